package platform

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// supervised runs a shell script as the only process of a supervisor until the test ends.
func supervised(t *testing.T, script string) (*client, string) {
	t.Helper()
	dir := t.TempDir()
	socket, log := filepath.Join(dir, "s.sock"), filepath.Join(dir, "log", "worker.log")
	worker := process{
		name: "worker", parts: []PartStatus{{Name: "engine"}}, logFile: log, stopGrace: 5 * time.Second,
		command: func() (*exec.Cmd, error) {
			command := exec.Command("/bin/sh", "-c", script)
			command.Dir = dir
			return command, nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- newSupervisor("v1", dir, socket, []process{worker}).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, errStopped) {
			t.Error(err)
		}
	})
	return newClient(socket), dir
}

// until waits for a status that a condition holds for.
func until(t *testing.T, ask *client, what string, holds func(Status) bool) Status {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last Status
	for {
		if status, err := ask.status(deadline); err == nil {
			if last = status; holds(status) {
				return status
			}
		}
		select {
		case <-deadline.Done():
			t.Fatalf("wait until %s: last status %+v", what, last)
		case <-tick.C:
		}
	}
}

const reportReady = `echo '{"part":"engine","state":"ready"}' >&3;`

func TestTheStatusSaysWhatAProcessReports(t *testing.T) {
	ask, _ := supervised(t, reportReady+` exec sleep 1000`)
	status := until(t, ask, "ready", func(s Status) bool { return s.Ready })
	if status.Version != "v1" || status.Processes[0].PID == 0 || status.Processes[0].Parts[0].State != Ready {
		t.Errorf("status is %+v", status)
	}
}

func TestAProcessThatEndsIsStartedAgainAndItsReasonShown(t *testing.T) {
	ask, dir := supervised(t, `if [ ! -e once ]; then touch once; echo last words >&2;
		echo '{"part":"engine","state":"failed","error":"engine: out of oil"}' >&3; exit 7; fi;`+reportReady+` exec sleep 1000`)
	status := until(t, ask, "ready after a restart", func(s Status) bool { return s.Ready })
	if worker := status.Processes[0]; worker.Restarts != 1 || worker.LastError != "engine: out of oil" {
		t.Errorf("process is %+v", worker)
	}
	if lines := lastLines(filepath.Join(dir, "log", "worker.log"), 5); strings.Join(lines, "") != "last words" {
		t.Errorf("log is %q", lines)
	}
}

func TestAProcessKilledBySignalIsStartedAgain(t *testing.T) {
	ask, _ := supervised(t, `if [ ! -e once ]; then touch once; kill -9 $$; fi;`+reportReady+` exec sleep 1000`)
	status := until(t, ask, "ready after a restart", func(s Status) bool { return s.Ready })
	if got := status.Processes[0].LastError; got != "it ended with killed" {
		t.Errorf("reason is %q", got)
	}
}

func TestAProgramThatAProcessLeftBehindDelaysNoRestart(t *testing.T) {
	ask, _ := supervised(t, `if [ ! -e once ]; then sleep 1000 & echo $! >once; kill -9 $$; fi; kill $(cat once);`+reportReady+` exec sleep 1000`)
	until(t, ask, "ready after a restart", func(s Status) bool { return s.Ready })
}

func TestStopEndsTheProcessAndTheSocket(t *testing.T) {
	ask, dir := supervised(t, `trap 'echo bye > bye; exit 0' TERM;`+reportReady+` while :; do sleep 0.05; done`)
	until(t, ask, "ready", func(s Status) bool { return s.Ready })
	if err := ask.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if _, err := ask.status(deadline); errors.Is(err, errNotRunning) {
			break
		}
		if deadline.Err() != nil {
			t.Fatal("the supervisor still answers")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bye")); err != nil {
		t.Errorf("the process was not asked to end: %v", err)
	}
}

func TestNobodyAtTheSocketIsNotRunning(t *testing.T) {
	_, err := newClient(filepath.Join(t.TempDir(), "s.sock")).status(t.Context())
	if !errors.Is(err, errNotRunning) {
		t.Errorf("error is %v", err)
	}
}
