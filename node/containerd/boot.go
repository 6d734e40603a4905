package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/slipway-platform/slipway/internal/boot"
)

// bootFile is the file in State that contains the ID of the boot during which State was created.
const bootFile = "boot"

// cleanState empties dir if it belongs to an earlier boot. In that case, the PIDs, sockets and
// mounts in dir are stale or refer to something else. cleanState keeps dir if it belongs to the
// current boot, so that running containers keep running. It then marks dir with the current boot's
// ID.
func cleanState(dir string) error {
	current, err := boot.ID("/proc")
	if err != nil {
		return err
	}
	current += "\n"
	path := filepath.Join(dir, bootFile)
	record, err := os.ReadFile(path)
	if err == nil && string(record) == current {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read boot ID of state: %w", err)
	}
	if err := empty(dir); err != nil {
		return fmt.Errorf("remove state of an earlier boot: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(current), 0o600)
}

// empty removes dir and its content. It fails if something is mounted in dir. In that case, dir
// does not belong to an earlier boot, and removing it would delete files on a mounted file system.
func empty(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, absolute+"/"), false
	})
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%q is mounted: run slipway down first", mounts[0].Mountpoint)
	}
	return os.RemoveAll(absolute)
}
