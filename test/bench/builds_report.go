package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

// runBuilds measures builds and reports the result.
func runBuilds(ctx context.Context, o options) error {
	machine, started := host.Describe(), time.Now()
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return fmt.Errorf("create working directory: %w", err)
	}
	defer os.RemoveAll(work)
	// Build pods run as other users, which need access to these files.
	if err := os.Chmod(work, 0o755); err != nil {
		return fmt.Errorf("open working directory: %w", err)
	}
	result, err := measureBuilds(ctx, work, o)
	if err != nil {
		return fmt.Errorf("measure builds: %w", err)
	}
	conditions := fmt.Sprintf("%s.\n%s; medians of %d builds of each kind on each side, %d started builds and %d triggered ones.\n",
		machine, started.UTC().Format("2006-01-02 15:04 MST"), o.rounds, startedBuilds, triggeredBuilds)
	fmt.Print("\n" + conditions + "\n" + result.table().Text() + "\n" + result.delays().Text())
	if o.markdown == "" {
		return nil
	}
	return buildsSection.Write(o.markdown, conditions+"\n"+result.table().Markdown()+"\n"+result.delays().Markdown())
}

// table returns both sides' times for a Dockerfile build.
func (r *builds) table() stats.Table {
	t := stats.Table{Heading: []string{"Dockerfile build and push", "Slipway", "buildah", "ratio", "aim", ""}}
	for _, kind := range []struct {
		name  string
		times buildTimes
		most  float64
	}{{"cold", r.cold, maxCold}, {"cached", r.warm, maxCached}} {
		buildah := stats.Median(stats.Seconds(kind.times.buildah))
		row := func(name string, slipway float64, aim, result string) {
			t.Rows = append(t.Rows, []string{name, fmt.Sprintf("%.2f s", slipway), fmt.Sprintf("%.2f s", buildah), fmt.Sprintf("%.2f", slipway/buildah), aim, result})
		}
		full := stats.Median(stats.Seconds(kind.times.slipway))
		row(kind.name+", `oc start-build --wait`", full, fmt.Sprintf("<= %.2f", kind.most), stats.Outcome(full/buildah <= kind.most))
		row(kind.name+", of which the stages of the build", stats.Median(stats.Seconds(kind.times.inside)), "", "")
	}
	return t
}

// delays returns the table with the delays until a build starts.
func (r *builds) delays() stats.Table {
	t := stats.Table{Heading: []string{"time until a build starts", "p50", "longest", "aim", ""}}
	for _, row := range []struct {
		name string
		took []time.Duration
		most float64
	}{{"request for a build to running pod", r.started, maxStart}, {"push of a base image to build", r.triggered, maxTrigger}} {
		p50 := stats.Median(stats.Seconds(row.took))
		t.Rows = append(t.Rows, []string{row.name, fmt.Sprintf("%.2f s", p50), fmt.Sprintf("%.2f s", stats.Percentile(stats.Seconds(row.took), 100)),
			fmt.Sprintf("p50 < %.0f s", row.most), stats.Outcome(p50 < row.most)})
	}
	return t
}
