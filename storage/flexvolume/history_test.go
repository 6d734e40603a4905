package flexvolume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestHistoryContainsCallsOfDriver(t *testing.T) {
	h := &history{file: historyFile(t.TempDir(), "example.com/disk")}
	keepDir := filepath.Dir(filepath.Dir(h.file))
	if calls, err := History(keepDir, ""); err != nil || len(calls) != 0 {
		t.Fatalf("calls %v, %v", calls, err)
	}
	start := time.Now()
	h.add(PastCall{Driver: "example.com/disk", Operation: OpMount, Path: "/pods/1/volumes/x/data", Volume: "disk-1", Start: start})
	// A killed process can leave a partial record behind.
	file, err := os.OpenFile(h.file, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString("\n{\"driver\":\"exa")
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	h.add(PastCall{Driver: "example.com/disk", Operation: OpUnmount, Path: "/pods/1/volumes/x/data", Kind: KindFailure, Message: "busy", Start: start.Add(1)})
	calls, err := History(keepDir, "example.com/disk")
	if err != nil || len(calls) != 2 || calls[0].Operation != OpMount || calls[1].Message != "busy" {
		t.Fatalf("calls %+v, %v", calls, err)
	}
	for volume, want := range map[string]bool{"disk-1": true, "data": true, "/pods/1/volumes/x/data": true, "other": false, "": false} {
		if calls[0].Concerns(volume) != want {
			t.Errorf("it concerns %q: %t", volume, !want)
		}
	}
	if calls, err := History(keepDir, "other"); err != nil || len(calls) != 0 {
		t.Errorf("calls of another driver: %v, %v", calls, err)
	}
}

func TestHistoryIsLimited(t *testing.T) {
	h := &history{file: historyFile(t.TempDir(), "disk")}
	for range 5 * historyBytes / 1000 {
		h.add(PastCall{Driver: "disk", Operation: OpMount, Message: strings.Repeat("x", 1000)})
	}
	total := int64(0)
	for _, file := range []string{h.file, h.file + ".1"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 2*historyBytes+4000 {
		t.Errorf("the files have %d bytes", total)
	}
}

func TestRetriedReleasesAreNotFailures(t *testing.T) {
	h := &history{file: historyFile(t.TempDir(), "disk")}
	keepDir := filepath.Dir(filepath.Dir(h.file))
	at := time.Now().Add(-time.Minute)
	call := func(op Operation, path string, kind Kind, start time.Time) {
		h.add(PastCall{Driver: "disk", Operation: op, Path: path, Kind: kind, Start: start})
	}
	call(OpUnmount, "/still", KindFailure, at)
	call(OpUnmount, "/later", KindTimeout, at)
	call(OpUnmount, "/later", "", at.Add(1))
	call(OpMount, "/mount", KindFailure, at)
	call(OpDetach, "old", KindFailure, at.Add(-releaseRetryPeriod))
	call(OpUnmountDevice, "/stopped", KindCanceled, at)
	failed, err := FailedReleases(keepDir)
	if err != nil || len(failed) != 1 || failed[0].Path != "/still" {
		t.Errorf("failed releases %+v, %v", failed, err)
	}
}

func TestRunningCallsAreInHistory(t *testing.T) {
	dir, keepDir := t.TempDir(), t.TempDir()
	hold := filepath.Join(t.TempDir(), "hold")
	write(t, executable(dir, "example.com/disk"), "#!/bin/sh\n"+`case $1 in init) echo '{"status":"Success"}';; *) while [ ! -e `+hold+` ]; do sleep 0.01; done; echo '{"status":"Success"}';; esac`)
	r := &Registry{Dir: dir, KeepDir: keepDir}
	componenttest.Run(t, r.Run)
	driver, err := r.Ready(t.Context(), "example.com/disk")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- driver.Unmount(t.Context(), "/pods/1/volumes/x/data") }()
	eventually.True(t, "the call to be listed", func() bool {
		calls := RunningCalls(keepDir, "example.com/disk")
		return len(calls) == 1 && calls[0].PID > 0 && calls[0].Concerns("data")
	})
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	calls, err := History(keepDir, "")
	last := calls[len(calls)-1]
	if err != nil || len(calls) != 2 || calls[0].Operation != OpInit || last.Operation != OpUnmount || last.Kind != "" || last.PID != 0 {
		t.Errorf("calls %+v, %v", calls, err)
	}
}
