package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ensureManifests creates the static pod directory if it is missing, because the kubelet would
// report a missing directory at every interval. dir is "" if there are no static pods. dir can also
// be the path of a manifest file.
func ensureManifests(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create static pod directory: %w", err)
	}
	return nil
}
