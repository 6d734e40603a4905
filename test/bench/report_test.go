package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/storage/flexvolume"
	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

func sampleReport() *report {
	side := func(cold time.Duration, memory int64, names ...string) []round {
		r := round{Cold: cold, Warm: cold / 2, ColdSeconds: 3, Pods: []time.Duration{500 * time.Millisecond, 700 * time.Millisecond},
			Volumes: []time.Duration{time.Second}, Hanging: []time.Duration{cold * 6}, Together: 10 * cold, TogetherSeconds: 40, Count: 100}
		for _, name := range names {
			r.Idle = append(r.Idle, host.Usage{Name: name, PSS: memory << 20, Anonymous: memory << 19, Seconds: 0.005})
		}
		last := r
		last.Loaded = loaded{Running: 5 * cold, Seconds: 80, Get: []time.Duration{20 * time.Millisecond}, List: []time.Duration{6 * time.Second}, Idle: r.Idle}
		return []round{r, r, last}
	}
	return &report{
		Machine: "2 cores (a processor with a name of some length), 24 GiB, Linux 6.18, load average before 0.12",
		Rounds:  3, Idle: 45 * time.Second, Started: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
		Sides: [2][]round{
			side(11*time.Second, 150, "slipway run", "slipway control-plane", "containerd", "slipway node", "pause"),
			side(4*time.Second, 100, "etcd", "kube-apiserver", "kube-controller-manager", "containerd-shim-runc-v2", "pause"),
		},
		calls:     []callCost{{flexvolume.OpWaitForAttach, time.Millisecond, 3 * time.Millisecond}, {flexvolume.OpInit, time.Millisecond, 1500 * time.Microsecond}},
		discovery: discovery{idle: 0.0002, changes: []time.Duration{time.Second, 1100 * time.Millisecond}, burst: 5 * time.Second, apart: time.Second},
	}
}

func TestEngineIsComparedWithAims(t *testing.T) {
	want := [][]string{
		{"waitforattach: added to fork and exec, 1.00 ms", "2.00 ms", "<= 1.50 ms", "missed"},
		{"init: added to fork and exec, 1.00 ms", "0.50 ms", "<= 1.50 ms", "met"},
		{"500 drivers, no change: CPU time per second", "0.2 ms", "0.0 ms", "missed"},
		{"changes of a driver, longest of 2 until effective", "1.10 s", "<= 1.30 s", "met"},
		{"10000 changes in 5.00 s: shortest time between scans", "1.00 s", ">= 1.00 s", "met"},
	}
	if diff := cmp.Diff(want, sampleReport().engine().Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReportFitsTerminal(t *testing.T) {
	for line := range strings.Lines(sampleReport().text()) {
		if width := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 100 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

func TestComparisonShowsMediansAndAims(t *testing.T) {
	got := sampleReport().comparison().Rows
	want := [][]string{
		{"ready, empty data directory", "11.00 s", "4.00 s", "2.75", "<= 1.00, < 3 s", "missed: 2.75, 11.00 s"},
		{"ready, second start", "5.50 s", "2.00 s", "2.75", "<= 0.70", "missed: 2.75"},
		{"ready: CPU time to start", "3.00 s", "3.00 s", "1.00", "", ""},
		{"idle: proportional set size", "600 MiB", "300 MiB", "2.00", "<= 0.45", "missed: 2.00"},
		{"idle: anonymous memory", "300 MiB", "150 MiB", "2.00", "<= 0.75", "missed: 2.00"},
		{"idle: CPU time per second", "20 ms", "15 ms", "1.33", "", ""},
		{"pod created to running, median", "0.60 s", "0.60 s", "1.00", "<= 1.00", "met"},
		{"pod created to running, p90", "0.70 s", "0.70 s", "1.00", "", ""},
		{"pod with attachable FlexVolume", "1.00 s", "1.00 s", "1.00", "<= 0.30", "missed: 1.00"},
		{"same, while another driver hangs", "> 60.00 s", "24.00 s", "2.75", "<= 1.05 of alone", "missed: 66.00"},
		{"many of these pods together", "0.91/s", "2.50/s", "0.36", ">= 2.00", "missed: 0.36"},
		{"same, CPU time to the deletion", "40.00 s", "40.00 s", "1.00", "", ""},
		{"250 pods together", "55.00 s", "20.00 s", "2.75", "< 60 s", "met"},
		{"meanwhile: CPU time", "80.00 s", "80.00 s", "1.00", "", ""},
		{"meanwhile: get of a pod, p99", "0.02 s", "0.02 s", "1.00", "< 1 s", "met"},
		{"meanwhile: list of pods, p99", "6.00 s", "6.00 s", "1.00", "< 5 s", "missed: 6.00 s"},
		{"loaded: proportional set size", "600 MiB", "300 MiB", "2.00", "<= 0.60", "missed: 2.00"},
		{"loaded: anonymous memory", "300 MiB", "150 MiB", "2.00", "<= 0.70", "missed: 2.00"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProcessesAreListedBySideAndPodsLast(t *testing.T) {
	var got []string
	for _, row := range sampleReport().processes().Rows {
		got = append(got, row[0])
	}
	want := []string{"Slipway: run", "Slipway: control-plane", "Slipway: containerd", "Slipway: node", "Slipway: pause",
		"Stock: etcd", "Stock: kube-apiserver", "Stock: kube-controller-manager", "Stock: containerd-shim-runc-v2", "Stock: pause"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAim(t *testing.T) {
	tests := []struct {
		name         string
		row          row
		value, ratio float64
		outcome      string
	}{
		{"a ratio that is printed as the aim is met", row{aim: aim{most: 1.25}}, 1, 1.254, "met"},
		{"a ratio above the aim is missed", row{aim: aim{most: 1.25}}, 1, 1.256, "missed: 1.26"},
		{"slipway's own limit also counts", row{aim: aim{most: 1.25, limit: 10}, print: stats.InSeconds}, 10, 1, "missed: 10.00 s"},
		{"a value below the limit is met", row{aim: aim{most: 1.25, limit: 10}, print: stats.InSeconds}, 9.99, 1, "met"},
		{"a rate below the aim is missed", row{aim: aim{least: 1.5}}, 1, 1.49, "missed: 1.49"},
		{"a rate above the aim is met", row{aim: aim{least: 1.5}}, 1, 1.6, "met"},
		{"without an aim, there is no outcome", row{}, 1, 99, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, got := test.row.evaluate(test.value, test.ratio); got != test.outcome {
				t.Errorf("got %q, want %q", got, test.outcome)
			}
		})
	}
}

func TestDifferenceIsBeyondNoiseIfRoundsAreApart(t *testing.T) {
	tests := []struct {
		name         string
		rounds, base []float64
		want         string
	}{
		{"all rounds are below the base's", []float64{1, 2, 3}, []float64{4, 5, 6}, "lower"},
		{"all rounds are above the base's", []float64{7, 9}, []float64{4, 5, 6}, "higher"},
		{"one round is within the base's range", []float64{1, 2, 4.5}, []float64{4, 5, 6}, "noise"},
		{"equal rounds", []float64{2, 2}, []float64{2, 2}, "noise"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := verdict(test.rounds, test.base); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDifferenceShowsBothRanges(t *testing.T) {
	r := sampleReport()
	for number := range r.Sides[0] {
		r.Sides[0][number].Cold += time.Duration(number) * time.Second
	}
	want := []string{"ready, empty data directory", "12.00 s", "4.00 s", "3.00", "11.00 s to 13.00 s", "4.00 s to 4.00 s", "higher"}
	if diff := cmp.Diff(want, r.difference().Rows[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
