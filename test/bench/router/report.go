package router

import (
	"fmt"
	"time"

	"github.com/slipway-platform/slipway/test/bench/stats"
)

// These are the targets for the router: ratios and times.
const (
	leastRequests = 0.98
	mostP99       = 1.05
	mostCreated   = 300 * time.Millisecond
	mostChanged   = 60 * time.Millisecond
	aimedRoutes   = 10_000 // number of routes for which the times have targets
)

// requests returns a table that compares the router with HAProxy alone.
func (r results) requests() stats.Table {
	t := stats.Table{Heading: []string{"requests", "Slipway", "HAProxy alone", "ratio", "aim", "", "p99, Slipway", "p99, HAProxy", "ratio", "aim", ""}}
	of := func(loads []requestLoad, value func(requestLoad) float64) float64 {
		var values []float64
		for _, load := range loads {
			values = append(values, value(load))
		}
		return stats.Median(values)
	}
	rate := func(l requestLoad) float64 { return l.rate }
	p99 := func(l requestLoad) float64 { return 1000 * l.p99.Seconds() }
	for _, load := range r.loads {
		// Compute a ratio for each round, because other load on the machine affects both values in
		// a round.
		var ratios, p99Ratios []float64
		for i := range load.slipway {
			ratios = append(ratios, load.slipway[i].rate/load.static[i].rate)
			p99Ratios = append(p99Ratios, p99(load.slipway[i])/p99(load.static[i]))
		}
		ratio, p99Ratio := stats.Median(ratios), stats.Median(p99Ratios)
		t.Rows = append(t.Rows, []string{
			load.name, fmt.Sprintf("%.0f/s", of(load.slipway, rate)), fmt.Sprintf("%.0f/s", of(load.static, rate)), fmt.Sprintf("%.2f", ratio),
			fmt.Sprintf(">= %.2f", leastRequests), stats.Outcome(stats.Percent(ratio) >= stats.Percent(leastRequests)),
			fmt.Sprintf("%.2f ms", of(load.slipway, p99)), fmt.Sprintf("%.2f ms", of(load.static, p99)), fmt.Sprintf("%.2f", p99Ratio),
			fmt.Sprintf("<= %.2f", mostP99), stats.Outcome(stats.Percent(p99Ratio) <= stats.Percent(mostP99)),
		})
	}
	return t
}

// many returns the table with the measurements for many routes.
func (r results) many() stats.Table {
	t := stats.Table{Heading: []string{"routes"}}
	for _, scale := range r.scales {
		t.Heading = append(t.Heading, fmt.Sprint(scale.routes))
	}
	t.Heading = append(t.Heading, "aim", "")
	add := func(name string, value func(scaleResult) string, aim string, met func(scaleResult) bool) {
		row := []string{name}
		result := ""
		for _, scale := range r.scales {
			row = append(row, value(scale))
			if aim != "" && (scale.routes == aimedRoutes || len(r.scales) == 1) {
				result = stats.Outcome(met(scale))
			}
		}
		t.Rows = append(t.Rows, append(row, aim, result))
	}
	times := func(of func(scaleResult) []time.Duration, percent int) func(scaleResult) string {
		return func(s scaleResult) string { return stats.Milliseconds(stats.Percentile(stats.Seconds(of(s)), percent)) }
	}
	within := func(of func(scaleResult) []time.Duration, most time.Duration) func(scaleResult) bool {
		return func(s scaleResult) bool { return stats.Percentile(stats.Seconds(of(s)), 99) < most.Seconds() }
	}
	created := func(s scaleResult) []time.Duration { return s.created }
	changed := func(s scaleResult) []time.Duration { return s.changed }
	add("route created to first response, p50", times(created, 50), "", nil)
	add("route created to first response, p99", times(created, 99), fmt.Sprintf("< %d ms", mostCreated.Milliseconds()), within(created, mostCreated))
	add("endpoints changed to first response, p50", times(changed, 50), "", nil)
	add("endpoints changed to first response, p99", times(changed, 99), fmt.Sprintf("< %d ms", mostChanged.Milliseconds()), within(changed, mostChanged))
	add("requests meanwhile", func(s scaleResult) string { return fmt.Sprint(s.requests) }, "", nil)
	add("failed requests", func(s scaleResult) string { return fmt.Sprint(s.failed) }, "0", func(s scaleResult) bool { return s.failed == 0 })
	add("router: CPU time per second", func(s scaleResult) string { return stats.Milliseconds(s.seconds) }, "", nil)
	add("reloads", func(s scaleResult) string { return fmt.Sprint(s.reloads) }, "", nil)
	add("reload, mean", func(s scaleResult) string { return stats.Milliseconds(s.reload) }, "", nil)
	add("router started to all routes served", func(s scaleResult) string { return stats.InSeconds(s.ready.Seconds()) }, "", nil)
	add("router: proportional set size", func(s scaleResult) string { return stats.Mebibytes(float64(s.router.PSS)) }, "", nil)
	add("HAProxy: proportional set size", func(s scaleResult) string { return stats.Mebibytes(float64(s.haproxy.PSS)) }, "", nil)
	return t
}

func (r results) conditions() string {
	return fmt.Sprintf("%s.\n%s; medians of %d rounds of %s each; %d changes a second for %s.\n",
		r.machine, r.started.UTC().Format("2006-01-02 15:04 MST"), r.rounds, r.load, churnRate, churnTime)
}

func (r results) text() string {
	return "\n" + r.conditions() + "\n" + r.requests().Text() + "\n" + r.many().Text()
}

func (r results) markdown() string {
	return r.conditions() + "\n" + r.requests().Markdown() + "\n" + r.many().Markdown()
}
