// Package measure measures clusters with several hosts, and a cluster with simulated nodes. `make
// bench` runs it. A test fails only if it cannot measure. A missed target does not fail the test;
// the table marks it as missed.
package measure

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/markdown"
	"github.com/slipway-platform/slipway/test/kit"
)

var (
	markdownFile = flag.String("markdown", "", "write the tables into this `file`, between their markers")
	hollowNodes  = flag.Int("nodes", 1000, "simulated nodes")
	podsPerNode  = flag.Int("pods", 10, "pods of each simulated node")
	idle         = flag.Duration("idle", 45*time.Second, "how long a cluster is idle before its memory is read")
)

func TestMain(m *testing.M) { kit.Main(m) }

// table is a table of measurements and their targets.
type table struct {
	section markdown.Section
	rows    [][4]string // name, value, target and outcome
	load    string      // the machine's load average over the last minute
	page    string      // name of a document next to the file in -markdown, or "" for that file
}

func newTable(name string) *table {
	load, _ := os.ReadFile("/proc/loadavg")
	before, _, _ := strings.Cut(string(load), " ")
	return &table{load: before, section: markdown.Section{Begin: "<!-- " + name + ":begin -->", End: "<!-- " + name + ":end -->"}}
}

// add adds a measurement without a target.
func (r *table) add(what, format string, values ...any) {
	r.rows = append(r.rows, [4]string{what, fmt.Sprintf(format, values...)})
}

// aim adds a duration whose target is at most limit.
func (r *table) aim(what string, got, limit time.Duration) {
	outcome := "met"
	if got > limit {
		outcome = "missed"
	}
	r.rows = append(r.rows, [4]string{what, seconds(got), "<= " + seconds(limit), outcome})
}

// least adds a number whose target is at least limit.
func (r *table) least(what string, got, limit float64) {
	r.number(what, "%.2f", ">=", got, limit, got >= limit)
}

// most adds a number whose target is at most limit. format formats the number with its unit.
func (r *table) most(what string, got, limit float64, format string) {
	r.number(what, format, "<=", got, limit, got <= limit)
}

func (r *table) number(what, format, sign string, got, limit float64, met bool) {
	outcome := "missed"
	if met {
		outcome = "met"
	}
	r.rows = append(r.rows, [4]string{what, fmt.Sprintf(format, got), sign + " " + fmt.Sprintf(format, limit), outcome})
}

// write prints the table and writes it to the document.
func (r *table) write(t *testing.T) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%d processors, %s; load average %s; one run.\n\n", runtime.NumCPU(), time.Now().UTC().Format("2006-01-02 15:04 MST"), r.load)
	text.WriteString("| measurement | value | aim | |\n|---|--:|---|---|\n")
	for _, row := range r.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row[:], " | "))
	}
	fmt.Fprintln(os.Stdout, text.String())
	if *markdownFile == "" {
		return
	}
	file := *markdownFile
	if r.page != "" {
		file = filepath.Join(filepath.Dir(file), r.page)
	}
	if err := r.section.Write(file, text.String()); err != nil {
		t.Error(err)
	}
}

// leaveAlone waits during a measurement, for example while a cluster is idle.
func leaveAlone(d time.Duration) { <-time.After(d) }

func seconds(d time.Duration) string {
	switch {
	case d < time.Second/10:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// percentile returns the smallest duration such that the given percentage of all durations do not
// exceed it.
func percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*percent/100]
}

func median(all []time.Duration) time.Duration { return percentile(all, 50) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
