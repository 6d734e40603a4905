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

// mounted reports whether anything is mounted at dir. It does not access the mounted file system,
// so it also works if that file system hangs or is broken, or if dir does not exist.
func mounted(dir string) (bool, error) {
	isMounted, err := entersMount(dir)
	switch {
	case err == nil:
		return isMounted, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	// The kernel is older than 5.6, or a parent directory cannot be accessed.
	table, err := mountsBelow(dir)
	if err != nil {
		return false, err
	}
	resolved := resolve(dir)
	return slices.ContainsFunc(table, func(m *mountinfo.Info) bool { return m.Mountpoint == resolved }), nil
}

// entersMount reports whether dir is a mount point, in which case the kernel refuses to open it
// with RESOLVE_NO_XDEV. If there are many mounts, this is faster than reading the mount table.
func entersMount(dir string) (bool, error) {
	dir = filepath.Clean(dir)
	parent, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(parent)
	file, err := unix.Openat2(parent, filepath.Base(dir), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV,
	})
	if errors.Is(err, unix.EXDEV) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, unix.Close(file)
}

// mountsBelow returns the mounts at and below dir, in creation order.
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

// resolve returns dir as it appears in the mount table. It follows links in the parent directories,
// but does not access dir itself, because a broken file system might be mounted at dir.
func resolve(dir string) string {
	dir = filepath.Clean(dir)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		return filepath.Join(parent, filepath.Base(dir))
	}
	return dir
}

// bind bind-mounts source at dir, read-only if requested.
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
		// A remount replaces all of the mount's flags, so the existing flags must be repeated.
		const keep = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
		flags := uintptr(stat.Flags) & keep
		err = unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, "")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", dir, err), unmountAll(dir))
	}
	return nil
}

// unmountAll unmounts everything at and below dir, in reverse order. It uses umount(8), which runs
// the file systems' helpers.
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

// removeDir removes an unmounted volume's directory if the driver has not already removed it. A
// directory that contains files is an error, because the files might belong to the user.
func removeDir(dir string) error {
	if isMounted, err := mounted(dir); err != nil {
		return err
	} else if isMounted {
		return fmt.Errorf("remove volume's directory %s: something is still mounted on it", dir)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume's directory: %w", err)
	}
	return nil
}
