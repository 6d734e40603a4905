package main

import "fmt"

// The aims of what serves CSI drivers: ratios, and memory in bytes.
const (
	leastAttach    = 2.0
	leastProvision = 0.8
	mostRequests   = 0.6
	mostMany       = 0.25
	mostOneDriver  = 64e6
)

// table compares both sides.
func (r csiResult) table() table {
	t := table{heading: []string{"CSI drivers", "Slipway", "external-attacher", "ratio", "aim", ""}}
	add := func(name, own, stock string, ratio float64, aim string, met bool) {
		outcome := ""
		if aim != "" {
			outcome = "met"
		}
		if aim != "" && !met {
			outcome = fmt.Sprintf("missed: %.2f", ratio)
		}
		t.rows = append(t.rows, []string{name, own, stock, fmt.Sprintf("%.2f", ratio), aim, outcome})
	}
	attach, detach := r.own.attach/r.attacher.attach, r.own.detach/r.attacher.detach
	add("attached", perSecond(r.own.attach), perSecond(r.attacher.attach), attach, fmt.Sprintf(">= %.2f", leastAttach), attach >= leastAttach)
	add("detached", perSecond(r.own.detach), perSecond(r.attacher.detach), detach, "", true)
	possible := csiWorkers / csiLatency.Seconds()
	provision := r.own.provision / possible
	add("provisioned; beside it what the driver allows", perSecond(r.own.provision), perSecond(possible), provision, fmt.Sprintf(">= %.2f", leastProvision), provision >= leastProvision)
	requests := r.own.requests / r.attacher.requests
	add("API requests to attach and detach a volume", fmt.Sprintf("%.2f", r.own.requests), fmt.Sprintf("%.2f", r.attacher.requests), requests, fmt.Sprintf("<= %.2f", mostRequests), requests <= mostRequests)
	idle := float64(r.own.idle.PSS)
	add("idle after that, one driver: proportional set size", mebibytes(idle), mebibytes(float64(r.attacher.idle.PSS)), idle/float64(r.attacher.idle.PSS), "<= 64 MB", idle <= mostOneDriver)
	many := float64(r.many.PSS) / float64(r.stockMany.PSS)
	add(fmt.Sprintf("idle with %d volumes: of %d drivers, of one", csiMany, csiDrivers), mebibytes(float64(r.many.PSS)), mebibytes(float64(r.stockMany.PSS)), many, fmt.Sprintf("<= %.2f of six", mostMany), many <= 6*mostMany)
	return t
}

func (r csiResult) conditions() string {
	return fmt.Sprintf("%s.\n%s; %d volumes, %d workers on both sides, a driver that answers in %s.\n",
		r.machine, r.started.UTC().Format("2006-01-02 15:04 MST"), csiVolumes, csiWorkers, csiLatency)
}

func (r csiResult) text() string { return "\n" + r.conditions() + "\n" + r.table().text() }

func (r csiResult) markdown() string { return r.conditions() + "\n" + r.table().markdown() }
