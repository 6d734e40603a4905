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

// Targets for the web console: sizes in bytes, and times in ms.
const (
	mostPageSize   = 300e3
	mostLogin      = 1200
	mostPicture    = 250
	mostFrame      = 100
	mostPageMemory = 200e6
)

// runConsole measures the web console and reports the result.
func runConsole(ctx context.Context, o options) error {
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
	result, err := measureConsole(ctx, work, program)
	if err != nil {
		return fmt.Errorf("measure web console: %w", err)
	}
	conditions := fmt.Sprintf("%s.\n%s; Chromium on the same machine; %d logins; %d and %d pods, 20 changes a second for %d s.\n",
		machine, started.UTC().Format("2006-01-02 15:04 MST"), len(result.load.Overview), fewPods, manyPods, watchSeconds)
	fmt.Print("\n" + conditions + "\n" + result.table().Text())
	if o.markdown == "" {
		return nil
	}
	return consoleSection.Write(o.markdown, conditions+"\n"+result.table().Markdown())
}

// table returns the measurements with their targets.
func (w *webConsole) table() stats.Table {
	t := stats.Table{Heading: []string{"web console", "p50", "p99", "aim", ""}}
	size := func(name string, bytes, most float64) {
		row := []string{name, fmt.Sprintf("%.0f kB", bytes/1e3), "", "", ""}
		if most > 0 {
			row[3], row[4] = fmt.Sprintf("<= %.0f kB", most/1e3), stats.Outcome(bytes <= most)
		}
		t.Rows = append(t.Rows, row)
	}
	times := func(name string, values []float64, aim string, met bool) {
		row := []string{name, fmt.Sprintf("%.0f ms", stats.Median(values)), fmt.Sprintf("%.0f ms", stats.Percentile(values, 99)), aim, ""}
		if aim != "" {
			row[4] = stats.Outcome(met)
		}
		t.Rows = append(t.Rows, row)
	}
	files := func(page string, of traffic) {
		size(fmt.Sprintf("%s: %.0f files, compressed, with headers", page, of.Count), of.Received, mostPageSize)
		contents := fmt.Sprintf("%.0f bytes", of.Files)
		parts := fmt.Sprintf("scripts %.1f, styles %.1f, fonts %.1f kB", of.Scripts/1e3, of.Styles/1e3, of.Fonts/1e3)
		t.Rows = append(t.Rows, []string{page + ": contents of these files: " + parts, contents, "", "", ""})
	}
	files("first page, the catalog", w.load.Catalog)
	size("responses of the API for the catalog", w.load.Catalog.API, 0)
	files("overview", w.load.OverviewBytes)
	times("login to overview, empty cache", w.load.Overview, fmt.Sprintf("p50 <= %d ms", mostLogin), stats.Median(w.load.Overview) <= mostLogin)
	for _, watch := range []struct {
		name string
		consoleWatch
	}{{fmt.Sprintf("%d pods", fewPods), w.few}, {fmt.Sprintf("%d pods", manyPods), w.many}} {
		t.Rows = append(t.Rows, []string{watch.name + ": login to the complete list", fmt.Sprintf("%.0f ms", watch.Complete), "", "", ""})
		times(watch.name+": request of a change until it is drawn", watch.Pictures, "", false)
		times(watch.name+": watch event of a change until it is drawn", watch.Drawings, fmt.Sprintf("p99 <= %d ms", mostPicture), stats.Percentile(watch.Drawings, 99) <= mostPicture)
		longest := slices.Max(watch.Frames)
		times(watch.name+": time between two frames", watch.Frames, "", false)
		t.Rows = append(t.Rows, []string{watch.name + ": longest time between two frames", fmt.Sprintf("%.0f ms", longest), "", fmt.Sprintf("<= %d ms", mostFrame), stats.Outcome(longest <= mostFrame)})
		size(watch.name+": heap of the page's scripts", watch.Heap, 0)
		size(watch.name+": memory of the page's process", watch.Memory, mostPageMemory)
	}
	return t
}
