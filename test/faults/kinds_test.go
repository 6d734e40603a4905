package faults

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/test/kit"
)

// fullDisk is a kind of fault that only the host with its own disk can have.
const fullDisk = "full disk"

// begin starts a fault on a host. It returns a function that ends the fault.
type begin func(t *testing.T, host *kit.Cluster) (end func())

// effects maps each kind of fault to the function that starts it.
var effects = map[string]begin{
	"kill of the control plane": kill("control-plane"),
	"kill of the node process":  kill("node"),
	"kill of containerd":        kill("containerd"),
	"kill of the supervisor": func(_ *testing.T, host *kit.Cluster) func() {
		host.Kill("slipway")
		return func() { host.Up() }
	},
	"kill of the host": loss,
	"pause of the control plane": func(_ *testing.T, host *kit.Cluster) func() {
		host.Signal("control-plane", syscall.SIGSTOP)
		return func() { host.Signal("control-plane", syscall.SIGCONT) }
	},
	"pause of the host": func(t *testing.T, host *kit.Cluster) func() {
		signalAll(t, host, syscall.SIGSTOP)
		return func() { signalAll(t, host, syscall.SIGCONT) }
	},
	"pulled cable": func(t *testing.T, host *kit.Cluster) func() {
		must(t, host.SetConnected(false))
		return func() { must(t, host.SetConnected(true)) }
	},
	"loss of incoming packets":       filter("input", "iifname eth0"),
	"loss of outgoing packets":       filter("output", "oifname eth0"),
	"loss of a third of the packets": filter("input", "iifname eth0 numgen random mod 3 < 1"),
	fullDisk:                         fill,
}

func kinds() []string { return slices.Sorted(maps.Keys(effects)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kill returns a fault that kills a process. The supervisor restarts the process.
func kill(process string) begin {
	return func(_ *testing.T, host *kit.Cluster) func() {
		host.Kill(process)
		return func() {}
	}
}

// loss kills all processes on a host, as a power failure does.
func loss(_ *testing.T, host *kit.Cluster) func() {
	host.KillEverything()
	return func() { host.Up() }
}

func signalAll(t *testing.T, host *kit.Cluster, signal syscall.Signal) {
	t.Helper()
	processes, err := host.Processes()
	must(t, err)
	for _, process := range processes {
		_ = syscall.Kill(process.PID, signal) // the process might have exited
	}
}

// filter returns a fault that drops a host's packets that match an nftables expression. hook is
// "input" or "output".
func filter(hook, match string) begin {
	return func(t *testing.T, host *kit.Cluster) func() {
		stop, err := host.Filter(hook, match)
		must(t, err)
		return func() { must(t, stop()) }
	}
}

// diskSize is the size, in bytes, of a host's disk.
const diskSize = 12 << 30

// newDisk returns an empty directory on a separate file system.
func newDisk(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-disk-")
	must(t, err)
	image := dir + ".img"
	t.Cleanup(func() { must(t, errors.Join(os.Remove(dir), os.Remove(image))) })
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, diskSize))
	for _, command := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, output)
		}
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	data := filepath.Join(dir, "data")
	must(t, os.Mkdir(data, 0o700))
	return data
}

// fill fills the host's disk.
func fill(t *testing.T, host *kit.Cluster) func() {
	path := host.Path("filler")
	file, err := os.Create(path)
	must(t, err)
	defer file.Close()
	size := int64(0)
	for step := int64(1 << 30); step >= 4096; {
		if err := unix.Fallocate(int(file.Fd()), 0, size, step); err != nil {
			step /= 2
			continue
		}
		size += step
	}
	return func() { must(t, os.Remove(path)) }
}
