package platform

import (
	"bytes"
	"regexp"
	"testing"
	"time"
)

func TestWithoutATerminalEachEventIsALine(t *testing.T) {
	var out bytes.Buffer
	show := &progress{out: &out, began: time.Now(), said: map[string]string{}}
	status := Status{Processes: []ProcessStatus{{Parts: []PartStatus{
		{Name: "etcd", State: Ready, StartSeconds: 0.25}, {Name: "apiserver", State: Starting},
	}}}}
	show.show(status)
	show.show(status)
	status.Processes[0].Parts[1] = PartStatus{Name: "apiserver", State: Failed, Error: "apiserver: port is taken"}
	show.show(status)
	got := regexp.MustCompile(`(?m)^ +\d+\.\ds`).ReplaceAllString(out.String(), "T")
	const want = "T  etcd             ready after 0.2s\nT  apiserver        failed: apiserver: port is taken\n"
	if got != want {
		t.Errorf("output is %q, want %q", got, want)
	}
}

func TestOnATerminalTheTableIsRedrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	show := &progress{out: &out, terminal: true, began: time.Now()}
	status := Status{Processes: []ProcessStatus{{Parts: []PartStatus{{Name: "etcd", State: Waiting}, {Name: "dns", State: Waiting}}}}}
	show.show(status)
	out.Reset()
	status.Processes[0].Parts[0] = PartStatus{Name: "etcd", State: Ready, StartSeconds: 0.5}
	show.show(status)
	const want = "\x1b[2A\x1b[J  ✓ etcd             ready     0.5s\n  · dns              waits\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}

func TestLongErrorsStayOnOneLine(t *testing.T) {
	if got := clip("first line\nsecond", 80); got != "first line" {
		t.Errorf("clip is %q", got)
	}
	if got := clip("äöüäöü", 4); got != "äöü…" {
		t.Errorf("clip is %q", got)
	}
}
