package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/supervisor/component"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

// startSupervisor starts a supervisor whose only process is a shell script. The supervisor runs
// until the test ends.
func startSupervisor(t *testing.T, script string) (*Client, string) {
	t.Helper()
	dir := t.TempDir()
	socket, log := filepath.Join(dir, "s.sock"), filepath.Join(dir, "log", "worker.log")
	worker := Process{
		Name: "worker", Components: []ComponentStatus{{Name: "engine"}}, LogFile: log, StopTimeout: 5 * time.Second,
		Command: []string{"/bin/sh", "-c", "cd " + dir + "\n" + script},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New("v1", dir, socket, []Process{worker}).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
	return NewClient(socket), dir
}

// waitStatus waits for a status that satisfies a condition.
func waitStatus(t *testing.T, client *Client, description string, holds func(Status) bool) Status {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last Status
	for {
		if status, err := client.Status(deadline); err == nil {
			if last = status; holds(status) {
				return status
			}
		}
		select {
		case <-deadline.Done():
			t.Fatalf("wait until %s: last status %+v", description, last)
		case <-tick.C:
		}
	}
}

const reportReady = `echo '{"part":"engine","state":"ready"}' >&3;`

func TestStatusHasEventsOfProcess(t *testing.T) {
	client, _ := startSupervisor(t, reportReady+` exec sleep 1000`)
	status := waitStatus(t, client, "ready", func(s Status) bool { return s.Ready })
	if status.Version != "v1" || status.Processes[0].PID == 0 || status.Processes[0].Components[0].State != component.Ready {
		t.Errorf("status is %+v", status)
	}
}

func TestEndedProcessRestartsAndStatusHasReason(t *testing.T) {
	client, dir := startSupervisor(t, `if [ ! -e once ]; then touch once; echo last words >&2;
		echo '{"part":"engine","state":"failed","error":"engine: out of oil"}' >&3; exit 7; fi;`+reportReady+` exec sleep 1000`)
	status := waitStatus(t, client, "ready after a restart", func(s Status) bool { return s.Ready })
	if worker := status.Processes[0]; worker.Restarts != 1 || worker.LastError != "engine: out of oil" {
		t.Errorf("process is %+v", worker)
	}
	if lines := logfile.LastLines(filepath.Join(dir, "log", "worker.log"), 5); strings.Join(lines, "") != "last words" {
		t.Errorf("log is %q", lines)
	}
}

func TestProcessKilledBySignalRestarts(t *testing.T) {
	client, _ := startSupervisor(t, `if [ ! -e once ]; then touch once; kill -9 $$; fi;`+reportReady+` exec sleep 1000`)
	status := waitStatus(t, client, "ready after a restart", func(s Status) bool { return s.Ready })
	if got := status.Processes[0].LastError; got != "the process ended: killed" {
		t.Errorf("reason is %q", got)
	}
}

func TestOrphanDoesNotDelayRestart(t *testing.T) {
	client, _ := startSupervisor(t, `if [ ! -e once ]; then sleep 1000 & echo $! >once; kill -9 $$; fi; kill $(cat once);`+reportReady+` exec sleep 1000`)
	waitStatus(t, client, "ready after a restart", func(s Status) bool { return s.Ready })
}

func TestStopEndsProcessAndSocket(t *testing.T) {
	client, dir := startSupervisor(t, `trap 'echo bye > bye; exit 0' TERM;`+reportReady+` while :; do sleep 0.05; done`)
	waitStatus(t, client, "ready", func(s Status) bool { return s.Ready })
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if _, err := client.Status(deadline); errors.Is(err, ErrNotRunning) {
			break
		}
		if deadline.Err() != nil {
			t.Fatal("the supervisor still responds")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bye")); err != nil {
		t.Errorf("the process did not get SIGTERM: %v", err)
	}
}

func TestProcessRestartsOnRequestWithoutError(t *testing.T) {
	client, dir := startSupervisor(t, `trap 'echo bye >> bye; exit 0' TERM;`+reportReady+` while :; do sleep 0.05; done`)
	first := waitStatus(t, client, "ready", func(s Status) bool { return s.Ready })
	if err := client.Restart(t.Context(), "worker"); err != nil {
		t.Fatal(err)
	}
	second := waitStatus(t, client, "ready again", func(s Status) bool { return s.Ready && s.Processes[0].PID != first.Processes[0].PID })
	if worker := second.Processes[0]; worker.Restarts != 0 || worker.LastError != "" {
		t.Errorf("process is %+v", worker)
	}
	if _, err := os.Stat(filepath.Join(dir, "bye")); err != nil {
		t.Errorf("the process did not get SIGTERM: %v", err)
	}
	if err := client.Restart(t.Context(), "ghost"); err == nil {
		t.Error("Restart succeeded for an unknown process")
	}
}

func TestClientReturnsErrNotRunningWithoutSupervisor(t *testing.T) {
	_, err := NewClient(filepath.Join(t.TempDir(), "s.sock")).Status(t.Context())
	if !errors.Is(err, ErrNotRunning) {
		t.Errorf("error is %v", err)
	}
}
