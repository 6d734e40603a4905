package haproxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// leave starts HAProxy and leaves it running, as a killed router would.
func (b *fixture) leave() *process {
	b.t.Helper()
	config := b.config()
	for _, dir := range []string{"conf", "run"} {
		if err := os.MkdirAll(filepath.Join(b.writer.Dir, dir), 0o700); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := writeFiles(b.writer.Dir, nil, config.files()); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.engine.File(), []byte(config.Text()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	p, err := start(b.engine.Program, b.engine.Dir, b.engine.File(), "", true)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { p.stop(0) })
	if err := p.waitReady(b.t.Context(), b.engine.control()); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func TestNextRouterTakesOverWithoutLosingRequests(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.engine.Outlive = true
	b.pod("web", "web", nil)
	b.route("web", "web.com", "web")
	former := b.leave()
	stale := filepath.Join(b.writer.Dir, "router", "certs", "shop:gone.pem")
	if err := os.MkdirAll(filepath.Dir(stale), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, []byte("of a deleted route"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.until("http://web.com", "web")
	stop := b.load("http://web.com")
	if !b.engine.Serves() {
		t.Error("the engine does not detect that HAProxy serves")
	}
	b.route("next", "next.com", "web")
	b.apply()
	componenttest.Run(t, b.engine.Run)
	b.until("http://next.com", "web")
	eventually.True(t, "end of the previous HAProxy", func() bool { return !former.alive() })
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d requests failed, the first with %s", len(failed), failed[0])
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the key of a deleted route still exists: %v", err)
	}
}

func TestOrphansAreEnded(t *testing.T) {
	b := newFixture(t, nil)
	former := b.leave()
	if err := EndOrphans(t.TempDir()); err != nil || !former.alive() {
		t.Fatalf("the HAProxy of another directory was ended (%v)", err)
	}
	if err := EndOrphans(b.writer.Dir); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "HAProxy ends", func() bool { return !former.alive() })
	if pids, _, err := ofDir(b.writer.Dir); err != nil || len(pids) > 0 {
		t.Errorf("processes %v are orphans (%v)", pids, err)
	}
}

func TestProcessesOfPodsAreNotOrphans(t *testing.T) {
	dir := t.TempDir()
	run := func(flags uintptr) (pid int) {
		command := exec.Command("/bin/sh")
		command.Args = []string{"haproxy", "-c", "read line", "sh", "-f", configFile(dir)}
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		input, err := command.StdinPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = input.Close() // closing the input ends the process
			_ = command.Wait()
		})
		return command.Process.Pid
	}
	run(syscall.CLONE_NEWPID)
	host := run(0)
	eventually.True(t, "only the host's process in the result", func() bool {
		pids, _, err := ofDir(dir)
		return err == nil && len(pids) == 1 && pids[0] == host
	})
}
