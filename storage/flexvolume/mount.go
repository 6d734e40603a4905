package flexvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// mounted says whether something is mounted at dir, by the kernel's mount table alone: it works where the mounted file system hangs
// or is broken, and for a directory that does not exist.
func mounted(dir string) (bool, error) {
	table, err := mountsBelow(dir)
	if err != nil {
		return false, err
	}
	resolved := resolve(dir)
	return slices.ContainsFunc(table, func(m *mountinfo.Info) bool { return m.Mountpoint == resolved }), nil
}

// mountsBelow are the mounts at dir and below, in the order in which they were made.
func mountsBelow(dir string) ([]*mountinfo.Info, error) {
	resolved := resolve(dir)
	table, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.Mountpoint != resolved && !strings.HasPrefix(m.Mountpoint, resolved+"/"), false
	})
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	return table, nil
}

// resolve is dir as the mount table has it: links in the directories above it are followed, but nothing looks into what may be mounted at dir
// itself.
func resolve(dir string) string {
	dir = filepath.Clean(dir)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		return filepath.Join(parent, filepath.Base(dir))
	}
	return dir
}

// bind makes the mount at source appear at dir too, read-only there if asked for.
func bind(source, dir string, readOnly bool) error {
	if err := unix.Mount(source, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, dir, err)
	}
	if !readOnly {
		return nil
	}
	var stat unix.Statfs_t
	err := unix.Statfs(dir, &stat)
	if err == nil {
		// A remount replaces all flags of the mount, so those that it has are given again.
		const keep = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
		flags := uintptr(stat.Flags) & keep
		err = unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, "")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", dir, err), unmountAll(dir))
	}
	return nil
}

// unmountAll undoes every mount at dir and below it, the last one first, with umount(8), which knows the helpers of file systems.
func unmountAll(dir string) error {
	table, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(table) {
		if err := mount.New("").Unmount(m.Mountpoint); err != nil {
			return fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}

// removeDir removes the directory of a volume after it has been unmounted. The driver may have done so. One that has files in it is an
// error: they may be the user's.
func removeDir(dir string) error {
	if still, err := mounted(dir); err != nil {
		return err
	} else if still {
		return fmt.Errorf("remove volume's directory %s: something is still mounted there", dir)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume's directory: %w", err)
	}
	return nil
}
