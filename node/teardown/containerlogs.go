package teardown

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ContainerLogsDir is the directory in which every kubelet creates a link to each container's log,
// for log collectors. Upstream hardcodes this path.
const ContainerLogsDir = "/var/log/containers"

// ContainerLogs removes the links in dir that point below target, even if their targets no longer
// exist. If dir is empty afterwards, ContainerLogs removes it as well.
func ContainerLogs(dir, target string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list container logs: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		log, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(log, strings.TrimSuffix(target, "/")+"/") {
			continue // the entry is a file, or another host's link
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove link to log: %w", err)
		}
	}
	return RemoveEmpty(dir)
}
