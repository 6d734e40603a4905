package csi

import (
	"fmt"

	"github.com/slipway-platform/slipway/test/bench/stats"
)

// These are the targets for programs that serve CSI drivers: ratios, and memory in bytes.
const (
	leastAttach    = 2.0
	leastProvision = 0.8
	mostRequests   = 0.6
	mostMany       = 0.25
	mostOneDriver  = 64e6
)

// table returns a table that compares both sides.
func (r results) table() stats.Table {
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
	add("attached", stats.PerSecond(rates.attach), stats.PerSecond(attacher.attach), attach, fmt.Sprintf(">= %.2f", leastAttach), attach >= leastAttach)
	add("detached", stats.PerSecond(rates.detach), stats.PerSecond(attacher.detach), detach, "", true)
	possible := maxCalls / callLatency.Seconds()
	provision := rates.provision / possible
	add("provisioned; in the next column, the limit of the driver", stats.PerSecond(rates.provision), stats.PerSecond(possible), provision, fmt.Sprintf(">= %.2f", leastProvision), provision >= leastProvision)
	requests := rates.requests / attacher.requests
	add("API requests to attach and detach a volume", number(rates.requests), number(attacher.requests), requests, fmt.Sprintf("<= %.2f", mostRequests), stats.Percent(requests) <= stats.Percent(mostRequests))
	byHand := r.byHand.requests / attacher.requests
	add("the same, for a manually created volume", number(r.byHand.requests), number(attacher.requests), byHand, "", true)
	processor := rates.processor / attacher.processor
	add("CPU time to attach and detach a volume", fmt.Sprintf("%.2f ms", 1000*rates.processor), fmt.Sprintf("%.2f ms", 1000*attacher.processor), processor, "", true)
	idle, attacherIdle := float64(r.idle[0].PSS), float64(r.idle[1].PSS)
	add("idle after that, one driver: proportional set size", stats.Mebibytes(idle), stats.Mebibytes(attacherIdle), idle/attacherIdle, "<= 64 MB", idle <= mostOneDriver)
	many := float64(r.many.PSS) / float64(r.stockMany.PSS)
	add(fmt.Sprintf("idle with %d volumes: of %d drivers, of one", manyVolumes, driverCount), stats.Mebibytes(float64(r.many.PSS)), stats.Mebibytes(float64(r.stockMany.PSS)), many, fmt.Sprintf("<= %.2f of six", mostMany), many <= 6*mostMany)
	return t
}

// medians returns the median of each value over the rounds.
func medians(rounds []throughput) throughput {
	of := func(value func(throughput) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, value(r))
		}
		return stats.Median(values)
	}
	return throughput{
		provision: of(func(r throughput) float64 { return r.provision }),
		attach:    of(func(r throughput) float64 { return r.attach }),
		detach:    of(func(r throughput) float64 { return r.detach }),
		requests:  of(func(r throughput) float64 { return r.requests }),
		life:      of(func(r throughput) float64 { return r.life }),
		processor: of(func(r throughput) float64 { return r.processor }),
	}
}

func number(v float64) string { return fmt.Sprintf("%.2f", v) }

func (r results) conditions() string {
	return fmt.Sprintf("%s.\n%s; medians of %d rounds; %d volumes, %d concurrent calls of the driver on both sides.\nA call takes %s, a write of the API server %s. A volume's whole life, "+
		"from the claim to the deletion, costs %.1f API requests.\n",
		r.machine, r.started.UTC().Format("2006-01-02 15:04 MST"), len(r.slipway), volumeCount, maxCalls, callLatency, writeLatency, medians(r.slipway).life)
}

func (r results) text() string { return "\n" + r.conditions() + "\n" + r.table().Text() }

func (r results) markdown() string { return r.conditions() + "\n" + r.table().Markdown() }
