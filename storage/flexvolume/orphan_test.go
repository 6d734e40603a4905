package flexvolume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// background starts a shell in its own process group, and kills the group at the end of the test.
func background(t *testing.T, script string) (pid int) {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // the process might have ended
		_ = command.Wait()
	})
	return command.Process.Pid
}

func TestDriverOfCrashedProcessIsKilled(t *testing.T) {
	t.Parallel()
	keep := t.TempDir()
	crashed := &Registry{Dir: t.TempDir(), KeepDir: keep}
	if err := crashed.killOrphans(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "child")
	stubborn := background(t, "trap '' TERM; sh -c 'echo $$ >"+file+"; exec sleep 1000' & wait; wait")
	eventually.True(t, "child", func() bool { content, _ := os.ReadFile(file); return len(content) > 1 })
	bystander := background(t, "exec sleep 1000")
	recordCall(crashed.runningCallsDir, stubborn, PastCall{})
	// Another process has the process ID of a driver that has exited.
	if err := os.WriteFile(filepath.Join(crashed.runningCallsDir, fmt.Sprintf("%d-1", bystander)), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	componenttest.Run(t, (&Registry{Dir: t.TempDir(), KeepDir: keep}).Run)
	if _, err := processStartTime(stubborn); err == nil {
		t.Error("the driver is alive")
	}
	child := strings.TrimSpace(read(t, file))
	eventually.True(t, "end of the driver's child", func() bool {
		stat, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if _, err := processStartTime(bystander); err != nil {
		t.Errorf("a process that is not a driver: %v", err)
	}
}

func TestEndedCallHasNoRecord(t *testing.T) {
	dir := t.TempDir()
	write(t, executable(dir, "example.com/one"), loggingScript)
	r := &Registry{Dir: dir, KeepDir: t.TempDir()}
	componenttest.Run(t, r.Run)
	if notes, err := os.ReadDir(r.runningCallsDir); err != nil || len(notes) > 0 {
		t.Errorf("records %v, error %v", notes, err)
	}
}
