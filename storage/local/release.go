package local

import (
	"errors"
	"path/filepath"

	"github.com/slipway-platform/slipway/storage/local/loop"
)

// Release detaches the devices that remain when the node shuts down. Only raw block volumes have
// such devices, because the kernel detaches a mounted volume's device with its last mount. Release
// does not affect data.
func Release(dir string) error {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	devices, err := loop.List(filepath.Join(dir, "volumes"))
	for _, device := range devices {
		err = errors.Join(err, loop.Detach(device.Path))
	}
	return err
}
