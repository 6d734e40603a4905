package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// startPause builds pause and starts it as process 1 in a new PID namespace.
func startPause(t *testing.T) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pause")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	pause := exec.Command(program)
	pause.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := pause.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pause.Process.Kill()
		_ = pause.Wait()
	})
	eventually.True(t, "ignored SIGCHLD", func() bool {
		const sigchld = 1 << (syscall.SIGCHLD - 1)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pause.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(status), "SigIgn:")
		var ignored uint64
		_, err = fmt.Sscanf(line, "%x", &ignored)
		return err == nil && ignored&sigchld != 0
	})
	return pause
}

func TestOrphansAreReaped(t *testing.T) {
	pause := startPause(t)
	// The shell exits immediately, so that pause inherits the shell's background process.
	orphan := exec.Command("nsenter", "-t", fmt.Sprint(pause.Process.Pid), "-p", "sh", "-c", "sleep 0.2 >/dev/null 2>&1 & sleep 60 >/dev/null 2>&1 &")
	if out, err := orphan.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	children := func() int {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", pause.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(string(data)))
	}
	// A child that exited and was not reaped would be listed until pause exits.
	eventually.True(t, "reaping of the ended child only", func() bool { return children() == 1 })
}

func TestPauseEndsOnSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		pause := startPause(t)
		if err := pause.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := pause.Wait()
		exit := (&exec.ExitError{})
		if !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("after %v: %v, want exit status 2", signal, err)
		}
	}
}
