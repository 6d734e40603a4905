package command

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func TestProgressWithoutTerminalPrintsLinePerEvent(t *testing.T) {
	var out bytes.Buffer
	show := &progress{out: &out, start: time.Now(), printed: map[[2]string]string{}}
	status := supervisor.Status{Processes: []supervisor.ProcessStatus{
		{Name: "control-plane", Components: []supervisor.ComponentStatus{
			{Name: "etcd", State: component.Ready, StartSeconds: 0.25}, {Name: "apiserver", State: component.Starting},
			{Name: "flexvolume", State: component.Ready, StartSeconds: 0.1},
		}},
		{Name: "node", Components: []supervisor.ComponentStatus{{Name: "flexvolume", State: component.Ready, StartSeconds: 0.3}}},
	}}
	show.show(status)
	show.show(status)
	status.Processes[0].Components[1] = supervisor.ComponentStatus{Name: "apiserver", State: component.Failed, Error: "apiserver: port is taken"}
	show.show(status)
	got := regexp.MustCompile(`(?m)^ +\d+\.\ds`).ReplaceAllString(out.String(), "T")
	const want = "T  etcd             ready after 0.2s\nT  flexvolume       ready after 0.1s\nT  flexvolume       ready after 0.3s\nT  apiserver        failed: apiserver: port is taken\n"
	if got != want {
		t.Errorf("output is %q, want %q", got, want)
	}
}

func TestProgressRedrawsTableOnTerminal(t *testing.T) {
	var out bytes.Buffer
	show := &progress{out: &out, terminal: true, start: time.Now()}
	status := supervisor.Status{Processes: []supervisor.ProcessStatus{{Components: []supervisor.ComponentStatus{{Name: "etcd", State: component.Waiting}, {Name: "dns", State: component.Waiting}}}}}
	show.show(status)
	out.Reset()
	status.Processes[0].Components[0] = supervisor.ComponentStatus{Name: "etcd", State: component.Ready, StartSeconds: 0.5}
	show.show(status)
	const want = "\x1b[2A\x1b[J  ✓ etcd             ready     0.5s\n  · dns              waits\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}

func TestClipReturnsOneShortLine(t *testing.T) {
	if got := clip("first line\nsecond", 80); got != "first line" {
		t.Errorf("clip is %q", got)
	}
	if got := clip("äöüäöü", 4); got != "äöü…" {
		t.Errorf("clip is %q", got)
	}
}
