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

// runTenants measures a single user in a cluster with many projects, and reports the result.
func runTenants(ctx context.Context, o options) error {
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
	result, err := measureTenants(ctx, work, program, filepath.Join(filepath.Dir(program), "oc"))
	if err != nil {
		return fmt.Errorf("measure users and projects: %w", err)
	}
	conditions := fmt.Sprintf("%s.\n%s; a user with %d of %d projects.\n", machine, started.UTC().Format("2006-01-02 15:04 MST"), ownProjects, allProjects)
	fmt.Print("\n" + conditions + "\n" + result.table().Text())
	if o.markdown == "" {
		return nil
	}
	return tenantsSection.Write(o.markdown, conditions+"\n"+result.table().Markdown())
}

// table returns the measurements with their targets.
func (r *tenants) table() stats.Table {
	t := stats.Table{Heading: []string{"users and projects", "p50", "p99", "aim", ""}}
	times := func(name string, took []time.Duration, most float64) {
		p50, p99 := stats.Median(stats.Seconds(took)), stats.Percentile(stats.Seconds(took), 99)
		row := []string{name, fmt.Sprintf("%.2f ms", 1000*p50), fmt.Sprintf("%.2f ms", 1000*p99), "", ""}
		if most > 0 {
			row[3], row[4] = fmt.Sprintf("p50 < %.0f ms", 1000*most), stats.Outcome(p50 < most)
		}
		t.Rows = append(t.Rows, row)
	}
	times("request for the user's projects", r.projects, maxProjects)
	times("`oc get projects`", r.command, maxProjects)
	times("`oc version --client`, which sends no request", r.empty, 0)
	times("same, CPU time", r.emptyCPU, maxVersion)
	times("request with a client certificate", r.certificate, 0)
	times("request with a token that was used before", r.hit, 0)
	times("request with a token that was never used", r.miss, 0)
	times("pod creation", r.pods, 0)
	t.Rows = append(t.Rows,
		[]string{"of which SCC admission, mean", fmt.Sprintf("%.2f ms", 1000*r.scc), "", fmt.Sprintf("< %.0f ms", 1000*maxSCC), stats.Outcome(r.scc < maxSCC)},
		[]string{"logins, two at a time", fmt.Sprintf("%.1f/s", r.loginRate), "", "", ""})
	return t
}
