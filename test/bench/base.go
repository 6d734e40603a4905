package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// runBase compares the slipway program with another build of Slipway, which the -base flag names.
// The rounds of the two builds alternate, as do the rounds of Slipway and stock in runClusters.
func runBase(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return fmt.Errorf("create working directory: %w", err)
	}
	defer os.RemoveAll(work)
	var compared [2]contender
	for i, program := range []struct{ name, path string }{{"slipway", o.slipway}, {"base", o.base}} {
		target := filepath.Join(work, "bin", program.name, "slipway")
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("copy programs: %w", err)
		}
		if err := copyProgram(program.path, target); err != nil {
			return fmt.Errorf("copy %q: %w", program.path, err)
		}
		compared[i] = contender{program.name, func(h *host.Host) (side, error) { return newSlipway(h, target) }}
	}
	report := &report{Machine: host.Describe(), Rounds: o.rounds, Idle: o.idle, Started: time.Now()}
	if report.Sides, err = measureSides(ctx, work, compared, o); err != nil {
		return err
	}
	fmt.Print("\n" + report.conditions() + "\n" + report.difference().Text() + "\n" + noiseNote)
	return nil
}

// noiseNote explains the last column of the table that difference returns.
const noiseNote = "A difference is beyond the noise if no round of one program is within the range of the other's rounds.\n"

// difference returns the table that compares two builds of Slipway. Sides[1] contains the base's
// rounds.
func (r *report) difference() stats.Table {
	t := stats.Table{Heading: []string{"", "Slipway", "base", "ratio", "Slipway's rounds", "base's rounds", ""}}
	for _, row := range append(rows(), requestRows()...) {
		value, base := row.value(r.Sides[0]), row.value(r.Sides[1])
		rounds, baseRounds := eachRound(r.Sides[0], row.value), eachRound(r.Sides[1], row.value)
		between := func(values []float64) string {
			return row.print(slices.Min(values)) + " to " + row.print(slices.Max(values))
		}
		t.Rows = append(t.Rows, []string{row.name, row.print(value), row.print(base), fmt.Sprintf("%.2f", value/base),
			between(rounds), between(baseRounds), verdict(rounds, baseRounds)})
	}
	return t
}

// eachRound returns the value for each round separately.
func eachRound(rounds []round, value func([]round) float64) (values []float64) {
	for _, r := range rounds {
		values = append(values, value([]round{r}))
	}
	return values
}

// verdict compares a program's rounds with the base's rounds. Two programs with the same
// distribution can have disjoint ranges by chance. With five rounds each, this happens in one in
// 126 comparisons, and with three rounds each, in one in ten.
func verdict(rounds, base []float64) string {
	switch {
	case slices.Max(rounds) < slices.Min(base):
		return "lower"
	case slices.Min(rounds) > slices.Max(base):
		return "higher"
	}
	return "noise"
}

// requestRows returns the rows that compare the times of API requests for Routes.
func requestRows() (rows []row) {
	for _, verb := range apiVerbs {
		for _, of := range apiPercentiles {
			value := over(func(r round) float64 {
				for _, result := range r.Requests {
					if result.verb == verb {
						return of.value(stats.Seconds(result.times[1]))
					}
				}
				return 0
			})
			rows = append(rows, row{name: "Route: " + verb + ", " + of.name, value: value, print: preciseMilliseconds})
		}
	}
	return rows
}
