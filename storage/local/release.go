package local

import (
	"errors"
	"path/filepath"

	"github.com/slipway-platform/slipway/storage/local/loop"
)

// Release ends the devices of a directory's volumes when the node goes down: those of raw block volumes, since those of mounted ones have
// ended with their mounts. Nothing of the volumes is lost.
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
