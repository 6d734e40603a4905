package teardown

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// deviceCheckpoint is the name of the file in which the kubelet records the devices allocated to
// pods.
const deviceCheckpoint = "kubelet_internal_checkpoint"

// DevicePlugins removes the files that a kubelet left in dir, its device plugin directory. These
// are the checkpoint, and the sockets of the kubelet and of plugins that have exited. If dir and
// its parent are empty afterwards, DevicePlugins removes them as well. If a program listens on the
// kubelet's socket, dir belongs to another kubelet, and DevicePlugins is a no-op.
func DevicePlugins(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list device plugins: %w", err)
	}
	if listens(filepath.Join(dir, filepath.Base(pluginapi.KubeletSocket))) {
		return nil
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.Name() != deviceCheckpoint && (entry.Type() != fs.ModeSocket || listens(path)) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove orphaned files of device plugins: %w", err)
		}
	}
	return RemoveEmpty(dir, filepath.Dir(filepath.Clean(dir)))
}

// RemoveEmpty removes directories in the given order, until it finds a directory that is not empty
// or is another program's mount point.
func RemoveEmpty(dirs ...string) error {
	for _, dir := range dirs {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EBUSY) {
			return nil
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %q: %w", dir, err)
		}
	}
	return nil
}

// listens reports whether a process listens on the Unix socket at path.
func listens(path string) bool {
	connection, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}
