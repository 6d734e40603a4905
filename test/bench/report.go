package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// report contains all measurements.
type report struct {
	Machine string
	Rounds  int
	Idle    time.Duration
	Started time.Time
	// Sides contains each side's rounds, in the order of sideNames.
	Sides [2][]round
	// calls and discovery contain the measurements of the FlexVolume engine alone.
	calls     []callCost
	discovery discovery
}

// row is one comparison. It computes a value for each side, prints both values, and compares their
// ratio with the target, if any.
type row struct {
	name  string
	value func([]round) float64
	print func(float64) string
	aim   aim
}

// aim is the target for a comparison. Fields that are zero or nil are not checked.
type aim struct {
	// most and least are limits on the ratio. limit is the limit on slipway's value.
	most, least, limit float64
	// alone, if not nil, returns slipway's value while no driver hangs. The ratio is relative to
	// this value instead of to the stock side's value.
	alone func([]round) float64
}

// rows returns the report's comparisons. Values are medians over the rounds.
func rows() []row {
	idle := func(quantity func(host.Usage) float64) func([]round) float64 {
		return over(func(r round) float64 { return host.Total(r.Idle, quantity) })
	}
	pods := func(r round) []time.Duration { return r.Pods }
	volumes := func(r round) []time.Duration { return r.Volumes }
	beside := func(r round) []time.Duration { return r.Hanging }
	return []row{
		{"ready, empty data directory", over(func(r round) float64 { return r.Cold.Seconds() }), stats.InSeconds, aim{most: 1, limit: 3}},
		{"ready, second start", over(func(r round) float64 { return r.Warm.Seconds() }), stats.InSeconds, aim{most: 0.7}},
		{"ready: CPU time to start", over(func(r round) float64 { return r.ColdSeconds }), stats.InSeconds, aim{}},
		{"idle: proportional set size", idle(func(u host.Usage) float64 { return float64(u.PSS) }), stats.Mebibytes, aim{most: 0.45}},
		{"idle: anonymous memory", idle(func(u host.Usage) float64 { return float64(u.Anonymous) }), stats.Mebibytes, aim{most: 0.75}},
		{"idle: CPU time per second", idle(func(u host.Usage) float64 { return u.Seconds }), stats.Milliseconds, aim{}},
		{"pod created to running, median", all(pods, stats.Median), stats.InSeconds, aim{most: 1}},
		{"pod created to running, p90", all(pods, func(v []float64) float64 { return stats.Percentile(v, 90) }), stats.InSeconds, aim{}},
		{"pod with attachable FlexVolume", all(volumes, stats.Median), stats.InSeconds, aim{most: 0.3}},
		{"same, while another driver hangs", all(beside, stats.Median), upToLimit, aim{most: 1.05, alone: all(volumes, stats.Median)}},
		{"many of these pods together", over(func(r round) float64 { return float64(r.Count) / r.Together.Seconds() }), stats.PerSecond, aim{least: 2}},
		{"same, CPU time to the deletion", over(func(r round) float64 { return r.TogetherSeconds }), stats.InSeconds, aim{}},
	}
}

// all returns a function that merges the times of all rounds, and computes a statistic, such as the
// median, with of.
func all(times func(round) []time.Duration, of func([]float64) float64) func([]round) float64 {
	return func(rounds []round) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, stats.Seconds(times(r))...)
		}
		return of(values)
	}
}

// over returns a function that computes the median of a value over the rounds.
func over(value func(round) float64) func([]round) float64 {
	return func(rounds []round) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, value(r))
		}
		return stats.Median(values)
	}
}

// upToLimit formats a time. It formats a time that reached hangLimit as "> LIMIT".
func upToLimit(v float64) string {
	if v >= hangLimit.Seconds() {
		return "> " + stats.InSeconds(hangLimit.Seconds())
	}
	return stats.InSeconds(v)
}

// evaluate returns the row's targets and whether they were met. If a target was missed, the outcome
// contains the value that missed it.
func (r row) evaluate(value, ratio float64) (text, outcome string) {
	var aims, missed []string
	add := func(aim string, met bool, number string) {
		if aims = append(aims, aim); !met {
			missed = append(missed, number)
		}
	}
	of := ""
	if r.aim.alone != nil {
		of = " of alone"
	}
	// Compare the rounded ratio with the target, so that 1.254 is treated as 1.25.
	output := fmt.Sprintf("%.2f", ratio)
	if r.aim.most != 0 {
		add(fmt.Sprintf("<= %.2f%s", r.aim.most, of), math.Round(100*ratio) <= math.Round(100*r.aim.most), output)
	}
	if r.aim.least != 0 {
		add(fmt.Sprintf(">= %.2f%s", r.aim.least, of), math.Round(100*ratio) >= math.Round(100*r.aim.least), output)
	}
	if r.aim.limit != 0 {
		add(fmt.Sprintf("< %.0f s", r.aim.limit), value < r.aim.limit, r.print(value))
	}
	switch {
	case len(aims) == 0:
		return "", ""
	case len(missed) > 0:
		return strings.Join(aims, ", "), "missed: " + strings.Join(missed, ", ")
	}
	return strings.Join(aims, ", "), "met"
}

// comparison returns the table that compares both sides.
func (r *report) comparison() stats.Table {
	t := stats.Table{Heading: []string{"", "Slipway", "stock", "ratio", "aim", ""}}
	for _, row := range append(rows(), loadedRows()...) {
		slipway, stock := row.value(r.Sides[0]), row.value(r.Sides[1])
		compared := stock
		if row.aim.alone != nil {
			compared = row.aim.alone(r.Sides[0])
		}
		aim, outcome := row.evaluate(slipway, slipway/compared)
		t.Rows = append(t.Rows, []string{row.name, row.print(slipway), row.print(stock), fmt.Sprintf("%.2f", slipway/stock), aim, outcome})
	}
	return t
}

// processes returns the table of both sides' processes. The last two columns contain the memory
// usage in the loaded cluster, and all other columns contain the usage in the idle cluster.
func (r *report) processes() stats.Table {
	t := stats.Table{Heading: []string{"idle process", "PSS", "anonymous", "CPU per second", "loaded PSS", "loaded anonymous"}}
	pss := func(u host.Usage) float64 { return float64(u.PSS) }
	anonymous := func(u host.Usage) float64 { return float64(u.Anonymous) }
	for side, rounds := range r.Sides {
		if len(rounds) == 0 {
			continue
		}
		last := rounds[len(rounds)-1].Loaded.Idle
		for _, process := range rounds[0].Idle {
			of := func(quantity func(host.Usage) float64) float64 {
				return over(func(r round) float64 { return usageOf(process.Name, r.Idle, quantity) })(rounds)
			}
			t.Rows = append(t.Rows, []string{
				strings.ToUpper(sideNames[side][:1]) + sideNames[side][1:] + ": " + strings.TrimPrefix(process.Name, "slipway "),
				stats.Mebibytes(of(pss)), stats.Mebibytes(of(anonymous)), stats.Milliseconds(of(func(u host.Usage) float64 { return u.Seconds })),
				stats.Mebibytes(usageOf(process.Name, last, pss)), stats.Mebibytes(usageOf(process.Name, last, anonymous)),
			})
		}
	}
	return t
}

// usageOf returns a quantity of the process with the given name, or 0 if all does not contain it.
func usageOf(name string, all []host.Usage, quantity func(host.Usage) float64) float64 {
	for _, u := range all {
		if u.Name == name {
			return quantity(u)
		}
	}
	return 0
}

// conditions describes the machine, the time and the number of measurements.
func (r *report) conditions() string {
	return fmt.Sprintf("%s.\n%s; medians of %d rounds, idle for %s with one pod and one service.\n",
		r.Machine, r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Rounds, r.Idle)
}

// sumNote explains the sums of memory and CPU time.
const sumNote = "Sums exclude containerd-shim-runc-v2 and pause, which are the same programs on both sides.\n"

// text returns the report for a 100-column terminal.
func (r *report) text() string {
	return "\n" + r.conditions() + "\n" + r.comparison().Text() + "\n" + r.api().Text() + "\n" + r.engine().Text() + "\n" + r.processes().Text() + "\n" + sumNote
}

// markdown returns the report for a document.
func (r *report) markdown() string {
	return r.conditions() + "\n" + r.comparison().Markdown() + "\n" + r.api().Markdown() + "\n" + r.engine().Markdown() + "\n" + r.processes().Markdown() + "\n" + sumNote
}
