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
		{Name: "control-plane", State: component.Starting, Components: []supervisor.ComponentStatus{
			{Name: "etcd", State: component.Ready, StartSeconds: 2.25}, {Name: "apiserver", State: component.Starting},
			{Name: "flexvolume", State: component.Ready, StartSeconds: 0.1},
		}},
		{Name: "node", State: component.Ready, Components: []supervisor.ComponentStatus{{Name: "flexvolume", State: component.Ready, StartSeconds: 0.3}}},
	}}
	show.show(status)
	show.show(status)
	status.Processes[0].Components[1] = supervisor.ComponentStatus{Name: "apiserver", State: component.Failed, Error: "port is taken"}
	show.show(status)
	got := regexp.MustCompile(`(?m)^ +\d+\.\ds`).ReplaceAllString(out.String(), "T")
	const want = "T  etcd             ready after 2.2s\nT  node             1 ready\nT  apiserver        failed: port is taken\n"
	if got != want {
		t.Errorf("output is %q, want %q", got, want)
	}
}

func TestProgressRedrawsTableOnTerminal(t *testing.T) {
	var out bytes.Buffer
	show := &progress{out: &out, terminal: true, start: time.Now()}
	status := supervisor.Status{Processes: []supervisor.ProcessStatus{
		{Name: "control-plane", State: component.Starting, Components: []supervisor.ComponentStatus{{Name: "etcd", State: component.Waiting}, {Name: "dns", State: component.Waiting}}},
		{Name: "node", State: component.Ready, Components: []supervisor.ComponentStatus{{Name: "kubelet", State: component.Ready}}},
	}}
	show.show(status)
	out.Reset()
	status.Processes[0].Components[0] = supervisor.ComponentStatus{Name: "etcd", State: component.Failed, Error: "disk is full"}
	show.show(status)
	const want = "\x1b[2A\x1b[J  · control-plane     0 of 2 ready\n    ✗ etcd failed: disk is full\n  ✓ node             1 ready\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}

func TestProgressNamesSlowestComponentsFirst(t *testing.T) {
	now := time.Now()
	process := supervisor.ProcessStatus{Name: "node", State: component.Starting, Components: []supervisor.ComponentStatus{
		{Name: "images", State: component.Ready},
		{Name: "router", State: component.Starting, Since: now.Add(-time.Second)},
		{Name: "kubelet", State: component.Starting, Since: now.Add(-3 * time.Second)},
		{Name: "egress-ips", State: component.Standby},
	}}
	if got, want := processLine(process, now), "  ▸ node              2 of 4 ready, starting kubelet 3.0s, router 1.0s"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
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
