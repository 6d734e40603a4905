package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// report is everything that was measured.
type report struct {
	Machine string
	Rounds  int
	Idle    time.Duration
	Started time.Time
	// Sides are the rounds of each side, in the order of sideNames.
	Sides [2][]round
}

// row is one comparison. It takes a value of each side's rounds, prints it, and compares the ratio with the aim, if it has one.
type row struct {
	name  string
	value func([]round) float64
	print func(float64) string
	// most is the greatest ratio that the aim allows; zero is no aim. limit is the greatest value of slipway's own, where it is not zero.
	most, limit float64
}

// rows are the comparisons of the report. Values are medians over the rounds.
func rows() []row {
	idle := func(quantity func(usage) float64) func([]round) float64 {
		return over(func(r round) float64 { return total(r.Idle, quantity) })
	}
	pods := func(of func([]float64) float64) func([]round) float64 {
		return func(rounds []round) float64 {
			var all []float64
			for _, r := range rounds {
				all = append(all, seconds(r.Pods)...)
			}
			return of(all)
		}
	}
	return []row{
		{"ready, empty data directory", over(func(r round) float64 { return r.Cold.Seconds() }), inSeconds, 1.25, 10},
		{"ready, second start", over(func(r round) float64 { return r.Warm.Seconds() }), inSeconds, 0, 0},
		{"ready: processor time until then", over(func(r round) float64 { return r.ColdSeconds }), inSeconds, 0, 0},
		{"idle: proportional set size", idle(func(u usage) float64 { return float64(u.PSS) }), mebibytes, 0.5, 0},
		{"idle: anonymous memory", idle(func(u usage) float64 { return float64(u.Anonymous) }), mebibytes, 0.85, 0},
		{"idle: processor time per second", idle(func(u usage) float64 { return u.Seconds }), milliseconds, 0, 0},
		{"pod created to running, median", pods(median), inSeconds, 1, 0},
		{"pod created to running, p90", pods(func(v []float64) float64 { return percentile(v, 90) }), inSeconds, 0, 0},
	}
}

// over takes the median of a value over the rounds.
func over(value func(round) float64) func([]round) float64 {
	return func(rounds []round) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, value(r))
		}
		return median(values)
	}
}

func inSeconds(v float64) string    { return fmt.Sprintf("%.2f s", v) }
func mebibytes(v float64) string    { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
func milliseconds(v float64) string { return fmt.Sprintf("%.0f ms", 1000*v) }

// aim says what is aimed at, and whether it was met: with the number that missed it if not.
func (r row) aim(own, ratio float64) (aim, outcome string) {
	if r.most == 0 {
		return "", ""
	}
	aim = fmt.Sprintf("<= %.2f", r.most)
	var missed []string
	// The number that is printed counts: 1.254 is 1.25.
	if math.Round(100*ratio) > math.Round(100*r.most) {
		missed = append(missed, fmt.Sprintf("%.2f", ratio))
	}
	if r.limit != 0 {
		aim += ", < " + fmt.Sprintf("%.0f s", r.limit)
		if own >= r.limit {
			missed = append(missed, r.print(own))
		}
	}
	if len(missed) > 0 {
		return aim, "missed: " + strings.Join(missed, ", ")
	}
	return aim, "met"
}

// comparison is the table of both sides.
func (r *report) comparison() table {
	t := table{heading: []string{"", "Slipway", "stock", "ratio", "aim", ""}}
	for _, row := range rows() {
		own, stock := row.value(r.Sides[0]), row.value(r.Sides[1])
		aim, outcome := row.aim(own, own/stock)
		t.rows = append(t.rows, []string{row.name, row.print(own), row.print(stock), fmt.Sprintf("%.2f", own/stock), aim, outcome})
	}
	return t
}

// processes is the table of the idle processes of both sides.
func (r *report) processes() table {
	t := table{heading: []string{"idle process", "PSS", "anonymous", "processor time per second"}}
	for which, rounds := range r.Sides {
		if len(rounds) == 0 {
			continue
		}
		for _, process := range rounds[0].Idle {
			of := func(quantity func(usage) float64) func([]round) float64 {
				return over(func(r round) float64 {
					for _, u := range r.Idle {
						if u.Name == process.Name {
							return quantity(u)
						}
					}
					return 0
				})
			}
			t.rows = append(t.rows, []string{
				strings.ToUpper(sideNames[which][:1]) + sideNames[which][1:] + ": " + strings.TrimPrefix(process.Name, "slipway "),
				mebibytes(of(func(u usage) float64 { return float64(u.PSS) })(rounds)),
				mebibytes(of(func(u usage) float64 { return float64(u.Anonymous) })(rounds)),
				milliseconds(of(func(u usage) float64 { return u.Seconds })(rounds)),
			})
		}
	}
	return t
}

// conditions says where, when and how often was measured.
func (r *report) conditions() string {
	return fmt.Sprintf("%s.\n%s; medians of %d rounds, idle for %s with one pod and one service.\n",
		r.Machine, r.Started.UTC().Format("2006-01-02 15:04 MST"), r.Rounds, r.Idle)
}

// sumNote says what the sums of memory and processor time are made of.
const sumNote = "Sums leave out containerd-shim-runc-v2 and pause, which are the same programs on both sides.\n"

// text is the report for a terminal of 100 columns.
func (r *report) text() string {
	return "\n" + r.conditions() + "\n" + r.comparison().text() + "\n" + r.processes().text() + "\n" + sumNote
}

// markdown is the report for a document.
func (r *report) markdown() string {
	return r.conditions() + "\n" + r.comparison().markdown() + "\n" + r.processes().markdown() + "\n" + sumNote
}
