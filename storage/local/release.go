package local

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/slipway-platform/slipway/storage/local/loop"
)

// Release detaches the devices that remain when the node shuts down. Only raw block volumes have
// such devices, because the kernel detaches a mounted volume's device with its last mount. dir is
// the directory of the volumes. kubeletDir is the kubelet's directory: the kubelet attaches its own
// device to each raw block volume. Release does not affect data. Call it before you remove the
// kubelet's mounts, because this changes the paths of its devices' files.
func Release(dir, kubeletDir string) error {
	kubeletDevices, err := loop.ListBelow(resolve(kubeletDir))
	volumes, listErr := loop.List(filepath.Join(resolve(dir), "volumes"))
	errs := []error{err, listErr}
	for _, device := range slices.Concat(kubeletDevices, volumes) {
		errs = append(errs, loop.Detach(device.Path))
	}
	return errors.Join(errs...)
}

// resolve returns a directory's path without symbolic links.
func resolve(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}
