package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// Targets for applications: a ratio, and times in seconds.
const (
	mostRollout     = 1.15
	mostImageChange = 1
	mostTemplate    = 0.050
)

// runApps measures applications and reports the result.
func runApps(ctx context.Context, o options) error {
	machine, started := host.Describe(), time.Now()
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return fmt.Errorf("create working directory: %w", err)
	}
	defer os.RemoveAll(work)
	program, err := filepath.Abs(o.slipway)
	if err != nil {
		return err
	}
	result, err := measureApps(ctx, work, program, filepath.Join(filepath.Dir(program), "oc"), o.rounds)
	if err != nil {
		return fmt.Errorf("measure applications: %w", err)
	}
	conditions := fmt.Sprintf("%s.\n%s; %d rollouts of each kind, in turns.\n", machine, started.UTC().Format("2006-01-02 15:04 MST"), len(result.config))
	fmt.Print("\n" + conditions + "\n" + result.table().Text())
	if o.markdown == "" {
		return nil
	}
	return appsSection.Write(o.markdown, conditions+"\n"+result.table().Markdown())
}

// table returns the measurements with their targets. It compares rollouts in pairs. The two
// rollouts in a pair run directly one after the other, so that other load on the machine affects
// both.
func (a *apps) table() stats.Table {
	t := stats.Table{Heading: []string{"applications", "p50", "p90", "aim", ""}}
	add := func(name string, took []time.Duration, aim string, met bool) {
		values := stats.Seconds(took)
		row := []string{name, fmt.Sprintf("%.3f s", stats.Median(values)), fmt.Sprintf("%.3f s", stats.Percentile(values, 90)), aim, ""}
		if aim != "" {
			row[4] = stats.Outcome(met)
		}
		t.Rows = append(t.Rows, row)
	}
	add("rollout of a Deployment, one pod", a.deployment, "", false)
	add("rollout of a DeploymentConfig, same pod", a.config, "", false)
	var ratios []float64
	for i := range a.config {
		ratios = append(ratios, a.config[i].Seconds()/a.deployment[i].Seconds())
	}
	ratio := stats.Median(ratios)
	t.Rows = append(t.Rows, []string{"ratio, pair by pair", fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f", stats.Percentile(ratios, 90)), fmt.Sprintf("p50 <= %.2f", mostRollout), stats.Outcome(ratio <= mostRollout)})
	add("image change to ReplicationController", a.image, fmt.Sprintf("p90 < %d s", mostImageChange), stats.Percentile(stats.Seconds(a.image), 90) < mostImageChange)
	add(fmt.Sprintf("template of %d objects processed", templateObjects), a.template, fmt.Sprintf("p50 < %.0f ms", 1000*mostTemplate), stats.Median(stats.Seconds(a.template)) < mostTemplate)
	add("first response of an idle service", a.wake, "", false)
	return t
}
