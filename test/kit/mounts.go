package kit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// separateVariable is set in the environment of a test program that runs in its own mount
// namespace.
const separateVariable = "SLIPWAY_TEST_SEPARATE"

// MainWithDevicePlugins works like MainWith but for a package whose cluster has device plugins. All
// kubelets use the same directory for device plugins, regardless of their data directories, and
// remove each other's sockets. Therefore, the test program executes itself in a mount namespace
// with a different directory at that path. If the test keeps its clusters, it does not create a
// mount namespace, so that the kept cluster stays visible. The cluster then uses the machine's
// directory.
func MainWithDevicePlugins(m *testing.M, options Options) {
	if !keepsClusters() {
		if os.Getenv(separateVariable) == "" {
			os.Exit(runSeparately())
		}
		if err := separateMounts(); err != nil {
			fmt.Fprintln(os.Stderr, "separate the directory of device plugins:", err)
			os.Exit(1)
		}
	}
	MainWith(m, options)
}

// runSeparately runs this program in a new mount namespace, and returns its exit code.
func runSeparately() int {
	// If another cluster is purged in the meantime, the purge removes the machine's directory,
	// provided that it is empty. The kernel would then also unmount the new namespace's directory.
	// A subdirectory, which kubelets do not remove, prevents this.
	keep, err := keepDirectory()
	if err != nil {
		fmt.Fprintln(os.Stderr, "keep the directory of device plugins:", err)
		return 1
	}
	defer os.Remove(keep)
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), separateVariable+"=1")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "run in a mount namespace:", err)
		return 1
	}
	return command.ProcessState.ExitCode()
}

// keepDirectory creates a directory in the machine's directory for device plugins, so that the
// machine's directory is not empty.
func keepDirectory() (string, error) {
	if err := os.MkdirAll(pluginapi.DevicePluginPath, 0o750); err != nil {
		return "", err
	}
	return os.MkdirTemp(pluginapi.DevicePluginPath, "test-")
}

// separateMounts mounts a separate directory for device plugins. It also unmounts the namespace's
// copies of other clusters' mounts, because these copies would keep the clusters' volume devices in
// use.
func separateMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	others, err := mountinfo.GetMounts(mountinfo.PrefixFilter(os.TempDir()))
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	for _, other := range others {
		if other.Mountpoint != os.TempDir() {
			// This fails if the mount was unmounted together with the mount above it.
			_ = unix.Unmount(other.Mountpoint, unix.MNT_DETACH)
		}
	}
	return unix.Mount("tmpfs", pluginapi.DevicePluginPath, "tmpfs", 0, "")
}
