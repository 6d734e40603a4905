package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/test/bench/stats"
)

// These are the targets for the FlexVolume engine. They are absolute values, because upstream has
// no counterpart to compare the engine with.
const (
	mostAdded  = 1500 * time.Microsecond
	mostChange = 1300 * time.Millisecond
	leastApart = time.Second
)

// measureEngine measures the FlexVolume engine in this process, before any cluster is running.
func (r *report) measureEngine(ctx context.Context, work string) (err error) {
	fmt.Fprint(os.Stderr, "FlexVolume engine:")
	defer fmt.Fprintln(os.Stderr)
	if r.calls, err = measureCalls(ctx, filepath.Join(work, "calls")); err != nil {
		return err
	}
	if r.discovery, err = measureDiscovery(ctx, filepath.Join(work, "discovery")); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, " a change takes effect in %.2fs", slices.Max(r.discovery.changes).Seconds())
	return nil
}

// engine returns the table for the FlexVolume engine.
func (r *report) engine() stats.Table {
	t := stats.Table{Heading: []string{"FlexVolume engine", "measured", "aim", ""}}
	add := func(name, result, aim string, met bool) {
		outcome := "met"
		if !met {
			outcome = "missed"
		}
		t.Rows = append(t.Rows, []string{name, result, aim, outcome})
	}
	for _, call := range r.calls {
		added := call.engine - call.bare
		add(fmt.Sprintf("%s: added to fork and exec, %s", call.operation, inMilliseconds(call.bare)),
			inMilliseconds(added), "<= "+inMilliseconds(mostAdded), added <= mostAdded)
	}
	d := r.discovery
	add(fmt.Sprintf("%d drivers, no change: CPU time per second", manyDrivers),
		fmt.Sprintf("%.1f ms", 1000*d.idle), "0.0 ms", d.idle < 0.00005)
	longest := time.Duration(0)
	if len(d.changes) > 0 {
		longest = slices.Max(d.changes)
	}
	add(fmt.Sprintf("changes of a driver, longest of %d until effective", len(d.changes)), stats.InSeconds(longest.Seconds()),
		"<= "+stats.InSeconds(mostChange.Seconds()), longest <= mostChange)
	add(fmt.Sprintf("%d changes in %s: shortest time between scans", burstChanges, stats.InSeconds(d.burst.Seconds())),
		stats.InSeconds(d.apart.Seconds()), ">= "+stats.InSeconds(leastApart.Seconds()), d.apart >= leastApart)
	return t
}

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }
