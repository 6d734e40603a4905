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

// sandbox is the directory in which a driver is checked, and a record of the devices that existed
// before the check.
type sandbox struct {
	dir     string
	devices map[string]string // loop devices that existed before the check
}

func newSandbox() (*sandbox, error) {
	dir, err := os.MkdirTemp("", "flexvolume-check-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	sandbox := &sandbox{dir: dir, devices: loopDevices()}
	for _, sub := range []string{sandbox.kubelet(), sandbox.data(), sandbox.injected(), sandbox.pluginDir(), sandbox.workingDir()} {
		if err == nil {
			err = os.MkdirAll(sub, 0o755)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create directory for check: %w", err)
	}
	return sandbox, nil
}

// kubelet is the kubelet's root directory. data is the value of {dir}. A driver that executes
// option values creates files in the injected and workingDir directories. Files with relative names
// are in workingDir.
func (b *sandbox) kubelet() string    { return filepath.Join(b.dir, "kubelet") }
func (b *sandbox) data() string       { return filepath.Join(b.dir, "data") }
func (b *sandbox) injected() string   { return filepath.Join(b.dir, "injected") }
func (b *sandbox) pluginDir() string  { return filepath.Join(b.dir, "exec") }
func (b *sandbox) workingDir() string { return filepath.Join(b.dir, "work") }

// id returns the ID of this check.
func (b *sandbox) id() string { return strings.TrimPrefix(filepath.Base(b.dir), "flexvolume-check-") }

// env returns the environment variable that identifies the driver's processes. The sandbox sets it
// for the driver, and all processes that the driver starts inherit it.
func (b *sandbox) env() string { return "SLIPWAY_FLEXVOLUME_CHECK=" + b.id() }

// mountsAt returns the number of mounts at dir.
func mountsAt(dir string) (int, error) {
	table, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != dir, false })
	if err != nil {
		return 0, fmt.Errorf("read mount table: %w", err)
	}
	return len(table), nil
}

// mounts returns the mounts in the sandbox, in creation order.
func (b *sandbox) mounts() ([]string, error) {
	table, err := mountinfo.GetMounts(mountinfo.PrefixFilter(b.dir))
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	var dirs []string
	for _, m := range table {
		dirs = append(dirs, m.Mountpoint)
	}
	return dirs, nil
}

// files returns the files that remain in the volume directories.
func (b *sandbox) files(driver string) []string {
	root := b.kubelet()
	pods, _ := filepath.Glob(filepath.Join(root, "pods", "*", "volumes", flexvolume.EscapeName(driver), "*"))
	devices, _ := filepath.Glob(flexvolume.DeviceMountDir(root, driver, "*"))
	return append(pods, devices...)
}

// loopDevices returns the backing files of the machine's loop devices, keyed by device.
func loopDevices() map[string]string {
	files := map[string]string{}
	paths, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range paths {
		if file, err := os.ReadFile(path); err == nil {
			files["/dev/"+filepath.Base(filepath.Dir(filepath.Dir(path)))] = strings.TrimSpace(string(file))
		}
	}
	return files
}

// newDevices returns the new loop devices whose backing file path contains the sandbox's ID. The
// path contains the ID if the file is in the sandbox or is named after a volume.
func (b *sandbox) newDevices() []string {
	var devices []string
	for device, file := range loopDevices() {
		if b.devices[device] != file && strings.Contains(file, b.id()) {
			devices = append(devices, device)
		}
	}
	slices.Sort(devices)
	return devices
}

// processes returns the command lines of running processes that the driver started, keyed by
// process ID.
func (b *sandbox) processes() map[int]string {
	commands := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), b.env()) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		commands[pid] = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	}
	return commands
}

// settleTimeout limits how long cleanup, for example by a FUSE daemon, may continue after the
// driver reports success.
const settleTimeout = 3 * time.Second

// settle waits up to settleTimeout for a condition.
func settle(condition func() bool) bool {
	for deadline := time.Now().Add(settleTimeout); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// clear removes remaining processes, mounts and loop devices.
func (b *sandbox) clear() error {
	var errs []error
	for pid := range b.processes() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("kill process %d: %w", pid, err))
		}
	}
	mounts, err := b.mounts()
	if err != nil {
		errs = append(errs, err)
	}
	for _, dir := range slices.Backward(mounts) {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", dir, err))
		}
	}
	for _, device := range b.newDevices() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("detach %s: %w: %s", device, err, out))
		}
	}
	return errors.Join(errs...)
}

// remove clears the sandbox and removes its directory, unless something is still mounted in it.
func (b *sandbox) remove() {
	_ = b.clear()
	if mounts, err := b.mounts(); err == nil && len(mounts) == 0 {
		_ = os.RemoveAll(b.dir)
	}
}
