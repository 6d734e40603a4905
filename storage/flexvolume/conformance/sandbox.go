package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// sandbox is the directory in which a driver is checked, and what is known of things outside of it.
type sandbox struct {
	dir     string
	devices map[string]string // loop devices from before the check
}

func newSandbox() (*sandbox, error) {
	dir, err := os.MkdirTemp("", "flexvolume-check-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	box := &sandbox{dir: dir, devices: loopDevices()}
	for _, sub := range []string{box.kubelet(), box.data(), box.injected(), box.pluginDir()} {
		if err == nil {
			err = os.MkdirAll(sub, 0o755)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create directory for check: %w", err)
	}
	return box, nil
}

// kubelet is kubelet's root directory; data is for what {dir} stands for; injected is where a driver that executes option values makes files.
func (b *sandbox) kubelet() string   { return filepath.Join(b.dir, "kubelet") }
func (b *sandbox) data() string      { return filepath.Join(b.dir, "data") }
func (b *sandbox) injected() string  { return filepath.Join(b.dir, "injected") }
func (b *sandbox) pluginDir() string { return filepath.Join(b.dir, "exec") }

// id tells this check from others.
func (b *sandbox) id() string { return strings.TrimPrefix(filepath.Base(b.dir), "flexvolume-check-") }

// mark is in the environment of everything that the driver starts.
func (b *sandbox) mark() string { return "SLIPWAY_FLEXVOLUME_CHECK=" + b.id() }

// mountsAt is how many mounts there are at a directory.
func mountsAt(dir string) (int, error) {
	table, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != dir, false })
	if err != nil {
		return 0, fmt.Errorf("read mount table: %w", err)
	}
	return len(table), nil
}

// mounts are the mounts in the sandbox, in the order in which they were made.
func (b *sandbox) mounts() ([]string, error) {
	table, err := mountinfo.GetMounts(mountinfo.PrefixFilter(b.dir))
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	var at []string
	for _, m := range table {
		at = append(at, m.Mountpoint)
	}
	return at, nil
}

// files are what is left in the directories of volumes.
func (b *sandbox) files(driver string) []string {
	root := b.kubelet()
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", flexvolume.EscapeName(driver), "*"))
	devices, _ := filepath.Glob(flexvolume.DeviceMountDir(root, driver, "*"))
	return append(pods, devices...)
}

// loopDevices are the machine's loop devices with the files behind them.
func loopDevices() map[string]string {
	found := map[string]string{}
	paths, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range paths {
		if file, err := os.ReadFile(path); err == nil {
			found["/dev/"+filepath.Base(filepath.Dir(filepath.Dir(path)))] = strings.TrimSpace(string(file))
		}
	}
	return found
}

// newDevices are loop devices of files in the sandbox, or of files that are named after a volume of the check.
func (b *sandbox) newDevices() []string {
	var left []string
	for device, file := range loopDevices() {
		if b.devices[device] != file && strings.Contains(file, b.id()) {
			left = append(left, device)
		}
	}
	slices.Sort(left)
	return left
}

// processes are those that the driver has started and that still run, with their command lines.
func (b *sandbox) processes() map[int]string {
	found := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), b.mark()) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found[pid] = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	}
	return found
}

// patience is how long things may take to go after the driver said that they are gone, such as a FUSE daemon.
const patience = 3 * time.Second

// settle waits until a condition holds, or patience is over.
func settle(condition func() bool) bool {
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// clear undoes whatever is left: mounts, processes and loop devices.
func (b *sandbox) clear() error {
	var problems []error
	for pid := range b.processes() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			problems = append(problems, fmt.Errorf("end process %d: %w", pid, err))
		}
	}
	left, err := b.mounts()
	if err != nil {
		problems = append(problems, err)
	}
	for _, at := range slices.Backward(left) {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			problems = append(problems, fmt.Errorf("unmount %s: %w", at, err))
		}
	}
	for _, device := range b.newDevices() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			problems = append(problems, fmt.Errorf("free %s: %w: %s", device, err, out))
		}
	}
	return errors.Join(problems...)
}

// remove clears and removes the sandbox; never what is still mounted in it.
func (b *sandbox) remove() {
	_ = b.clear()
	if left, err := b.mounts(); err == nil && len(left) == 0 {
		_ = os.RemoveAll(b.dir)
	}
}
