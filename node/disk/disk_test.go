package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/node/teardown"
)

// smallDisk mounts an empty 100 MiB disk and returns its mount point.
func smallDisk(t *testing.T) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "disk"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 100<<20)); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.ext4", "-q", image)
	run(t, "mount", "-o", "loop", image, dir)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func run(t *testing.T, command ...string) {
	t.Helper()
	if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, output)
	}
}

// fill fills a disk until only a fraction of Guard's minimum free space remains.
func fill(t *testing.T, dir string) {
	t.Helper()
	free, minimum, err := space(dir)
	if err != nil {
		t.Fatal(err)
	}
	run(t, "fallocate", "-l", fmt.Sprint(free-minimum/2), filepath.Join(dir, "filler"))
}

// pod is a process in a pod's cgroup.
type pod struct {
	done chan struct{}
	err  error
}

func (p *pod) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func startPod(t *testing.T, guard *Guard, class, uid, script string) *pod {
	t.Helper()
	group := filepath.Join(guard.PodGroup, class, "pod"+uid, "container")
	if err := cgroup.Create(group); err != nil {
		t.Fatal(err)
	}
	// Start the script only after the process is in its cgroup.
	command := exec.Command("sh", "-c", "read go; "+script)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pod{done: make(chan struct{})}
	go func() { defer close(p.done); p.err = command.Wait() }()
	t.Cleanup(func() {
		for _, pid := range cgroup.Processes(group) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		<-p.done
	})
	if err := cgroup.Add(group, command.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := input.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	return p
}

func newGuard(t *testing.T, dir string) *Guard {
	t.Helper()
	guard := &Guard{
		Dirs: []string{dir, filepath.Join(dir, "missing")}, PodGroup: fmt.Sprintf("/slipway-test-%d/kubepods", os.Getpid()), LogDir: t.TempDir(),
	}
	t.Cleanup(func() {
		if err := teardown.Cgroups(filepath.Dir(guard.PodGroup)); err != nil {
			t.Error(err)
		}
	})
	return guard
}

func TestPodsThatFillDiskAreKilled(t *testing.T) {
	dir := smallDisk(t)
	guard := newGuard(t, dir)
	// Each process repeatedly writes and deletes a small file, so that the disk does not fill up
	// during the test.
	second := "while :; do dd if=/dev/zero of=" + dir + "/$$ bs=1M count=1 2>/dev/null; rm " + dir + "/$$; done"
	writers := map[string]*pod{}
	for _, class := range []string{"besteffort", "burstable", ""} {
		writers[class] = startPod(t, guard, class, "writer"+class, second)
	}
	idle := startPod(t, guard, "besteffort", "idle", "while :; do sleep 1; done")
	printer := startPod(t, guard, "burstable", "printer", "while :; do sleep 1; done")
	log := filepath.Join(guard.LogDir, "shop_web_printer", "main", "0.log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	check := func() {
		guard.check()
		info, err := os.Stat(log)
		if errors.Is(err, os.ErrNotExist) {
			err = os.WriteFile(log, nil, 0o644)
		} else if err == nil {
			err = os.Truncate(log, info.Size()+2*maxWritten)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	for range 5 {
		check()
	}
	for class, writer := range writers {
		if writer.hasEnded() {
			t.Fatalf("%s: a writer is killed although the disk is empty", class)
		}
	}
	fill(t, dir)
	eventually.True(t, "end of the pods that write", func() bool {
		check()
		all := printer.hasEnded()
		for _, writer := range writers {
			all = all && writer.hasEnded()
		}
		return all
	})
	if idle.hasEnded() {
		t.Errorf("a pod that writes nothing is killed: %v", idle.err)
	}
}
