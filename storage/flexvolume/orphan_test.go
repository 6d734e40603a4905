package flexvolume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/parttest"
)

// background starts a shell in a process group of its own, which ends with the test at the latest.
func background(t *testing.T, script string) (pid int) {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = command.Wait()
	})
	return command.Process.Pid
}

func TestADriverThatWasCalledBeforeACrashIsEnded(t *testing.T) {
	t.Parallel()
	keep := t.TempDir()
	before := &Registry{Dir: t.TempDir(), KeepDir: keep}
	if err := before.endOrphans(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "child")
	stubborn := background(t, "trap '' TERM; sh -c 'echo $$ >"+file+"; exec sleep 1000' & wait; wait")
	eventually.True(t, "child", func() bool { content, _ := os.ReadFile(file); return len(content) > 1 })
	other := background(t, "exec sleep 1000")
	noteRunning(before.running, stubborn)
	// Another process has the identity of a driver that has ended.
	if err := os.WriteFile(filepath.Join(before.running, fmt.Sprintf("%d-1", other)), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	parttest.Run(t, (&Registry{Dir: t.TempDir(), KeepDir: keep}).Run)
	if _, err := startOf(stubborn); err == nil {
		t.Error("the driver lives")
	}
	child := strings.TrimSpace(read(t, file))
	eventually.True(t, "end of the driver's child", func() bool {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if _, err := startOf(other); err != nil {
		t.Errorf("a process that is no driver: %v", err)
	}
}

func TestACallThatHasEndedIsNotNoted(t *testing.T) {
	dir := t.TempDir()
	write(t, executable(dir, "example.com/one"), good)
	r := &Registry{Dir: dir, KeepDir: t.TempDir()}
	parttest.Run(t, r.Run)
	if notes, err := os.ReadDir(r.running); err != nil || len(notes) > 0 {
		t.Errorf("notes %v, error %v", notes, err)
	}
}
