package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// The test runs a copy of a program, because the kernel keeps pages that other processes have
// mapped. The copy is on a disk, because the kernel would also keep the pages of a tmpfs. The test
// syncs the copy, because the kernel does not release pages that are not on the disk yet.
func TestProgramOfReadyProcessIsReleased(t *testing.T) {
	original, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/tmp", "slipway-supervisor-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "sleep")
	if err := atomicfile.Write(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	process := Process{
		Name: "worker", Components: []ComponentStatus{{Name: "worker"}}, Command: []string{program, "1000"},
		LogFile: filepath.Join(dir, "log", "worker.log"), StopTimeout: time.Second,
		WaitReady: func(context.Context) error { return nil },
	}
	socket := filepath.Join(dir, "s.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New("v1", dir, socket, []Process{process}).Run(ctx) }()
	pid := waitStatus(t, NewClient(socket), "ready", func(s Status) bool { return s.Ready }).Processes[0].PID
	eventually.Equal(t, "the program's code is in memory", func() bool { return codeInMemory(t, pid, program) }, false)
	cancel()
	if err := <-done; err != nil && !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}

// codeInMemory reports whether a process has mapped pages of the program's code.
func codeInMemory(t *testing.T, pid int, program string) bool {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Error(err)
		return false
	}
	code := false
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 6:
			code = fields[1] == "r-xp" && fields[5] == program
		case code && fields[0] == "Rss:":
			return fields[1] != "0"
		}
	}
	t.Errorf("process %d has not mapped the code of %s", pid, program)
	return false
}
