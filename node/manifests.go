package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ensureManifests creates the directory of static pods if it is missing: the kubelet would report a
// missing directory in every interval. dir is empty if there are no static pods, and can also be a
// file.
func ensureManifests(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create directory of static pods: %w", err)
	}
	return nil
}
