package main

import (
	"fmt"
	"math"

	"github.com/slipway-platform/slipway/test/bench/stats"
)

// The targets of programs that serve CSI drivers: ratios, and memory in bytes.
const (
	leastAttach    = 2.0
	leastProvision = 0.8
	mostRequests   = 0.6
	mostMany       = 0.25
	mostOneDriver  = 64e6
)

// table compares both sides.
func (r csiResult) table() stats.Table {
	t := stats.Table{Heading: []string{"CSI drivers", "Slipway", "external-attacher", "ratio", "aim", ""}}
	add := func(name, slipway, stock string, ratio float64, aim string, met bool) {
		outcome := ""
		if aim != "" {
			outcome = "met"
		}
		if aim != "" && !met {
			outcome = fmt.Sprintf("missed: %.2f", ratio)
		}
		t.Rows = append(t.Rows, []string{name, slipway, stock, fmt.Sprintf("%.2f", ratio), aim, outcome})
	}
	rates, attacher := medians(r.slipway), medians(r.attacher)
	attach, detach := rates.attach/attacher.attach, rates.detach/attacher.detach
	add("attached", perSecond(rates.attach), perSecond(attacher.attach), attach, fmt.Sprintf(">= %.2f", leastAttach), attach >= leastAttach)
	add("detached", perSecond(rates.detach), perSecond(attacher.detach), detach, "", true)
	possible := csiWorkers / csiLatency.Seconds()
	provision := rates.provision / possible
	add("provisioned; beside it what the driver allows", perSecond(rates.provision), perSecond(possible), provision, fmt.Sprintf(">= %.2f", leastProvision), provision >= leastProvision)
	requests := rates.requests / attacher.requests
	add("API requests to attach and detach a volume", number(rates.requests), number(attacher.requests), requests, fmt.Sprintf("<= %.2f", mostRequests), percent(requests) <= percent(mostRequests))
	byHand := r.byHand.requests / attacher.requests
	add("the same, of a volume that was made by hand", number(r.byHand.requests), number(attacher.requests), byHand, "", true)
	processor := rates.processor / attacher.processor
	add("processor time to attach and detach a volume", fmt.Sprintf("%.2f ms", 1000*rates.processor), fmt.Sprintf("%.2f ms", 1000*attacher.processor), processor, "", true)
	idle, attacherIdle := float64(r.idle[0].PSS), float64(r.idle[1].PSS)
	add("idle after that, one driver: proportional set size", mebibytes(idle), mebibytes(attacherIdle), idle/attacherIdle, "<= 64 MB", idle <= mostOneDriver)
	many := float64(r.many.PSS) / float64(r.stockMany.PSS)
	add(fmt.Sprintf("idle with %d volumes: of %d drivers, of one", csiMany, csiDrivers), mebibytes(float64(r.many.PSS)), mebibytes(float64(r.stockMany.PSS)), many, fmt.Sprintf("<= %.2f of six", mostMany), many <= 6*mostMany)
	return t
}

// medians returns the median of each number over the rounds.
func medians(rounds []csiRates) csiRates {
	of := func(value func(csiRates) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, value(r))
		}
		return stats.Median(values)
	}
	return csiRates{
		provision: of(func(r csiRates) float64 { return r.provision }),
		attach:    of(func(r csiRates) float64 { return r.attach }),
		detach:    of(func(r csiRates) float64 { return r.detach }),
		requests:  of(func(r csiRates) float64 { return r.requests }),
		life:      of(func(r csiRates) float64 { return r.life }),
		processor: of(func(r csiRates) float64 { return r.processor }),
	}
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }

// percent rounds a ratio as it is printed. The rounded number decides: 0.604 is 0.60.
func percent(ratio float64) float64 { return math.Round(100 * ratio) }

func (r csiResult) conditions() string {
	return fmt.Sprintf("%s.\n%s; medians of %d rounds; %d volumes, %d calls of the driver at once on both sides.\nA call takes %s, a write of the API server %s. A volume's whole life, "+
		"from the claim to the deletion, costs %.1f API requests.\n",
		r.machine, r.started.UTC().Format("2006-01-02 15:04 MST"), len(r.slipway), csiVolumes, csiWorkers, csiLatency, csiWrite, medians(r.slipway).life)
}

func (r csiResult) text() string { return "\n" + r.conditions() + "\n" + r.table().Text() }

func (r csiResult) markdown() string { return r.conditions() + "\n" + r.table().Markdown() }
