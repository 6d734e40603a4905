package filesystem

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mount"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mount mounts the device at dir with the given mount(8) options. Blocks of deleted files are
// discarded on the device, unless the options contain nodiscard.
func Mount(t Type, device, dir string, options []string) error {
	options = slices.Clone(options)
	if !slices.Contains(options, "nodiscard") {
		options = append(options, "discard")
	}
	if t == XFS {
		options = append(options, "nouuid") // a copy of a volume has the volume's UUID
	}
	if err := mount.Mount(device, dir, string(t), strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mount %s file system: %w", t, err)
	}
	return nil
}

// MountEmpty mounts an empty read-only directory at dir. It creates dir if it does not exist.
func MountEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := mount.Mount("none", dir, "tmpfs", "ro,nosuid,nodev,noexec,size=4k,mode=755"); err != nil {
		return fmt.Errorf("mount empty directory: %w", err)
	}
	return nil
}

// Bind bind-mounts the directory or device source at target.
func Bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	return SetReadOnly(target)
}

// SetReadOnly makes the mount at target read-only. It does not change other mounts of the same file
// system.
func SetReadOnly(target string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	// A remount replaces all of the mount's flags, so the existing flags must be repeated.
	const mask = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	flags := uintptr(stat.Flags) & mask
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// Unmount unmounts everything at path, in reverse order. It is a no-op if nothing is mounted.
func Unmount(path string) error {
	for {
		mounts, err := MountsAt(path)
		if err != nil || len(mounts) == 0 {
			return err
		}
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// MountsAt returns the mounts at path, in creation order. It reads only the kernel's mount table
// and does not access the mounted file system.
func MountsAt(path string) ([]*mountinfo.Info, error) {
	path = filepath.Clean(path)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(parent, filepath.Base(path))
	}
	return table(func(m *mountinfo.Info) bool { return m.Mountpoint == path })
}

// MountsOf returns a block device's mounts: all mounts of its file system, and bind mounts of the
// device itself.
func MountsOf(device string) ([]*mountinfo.Info, error) {
	matches, err := MatchDevice(device)
	if err != nil {
		return nil, err
	}
	return table(matches)
}

// MatchDevice returns a function that reports whether a mount belongs to a block device.
func MatchDevice(device string) (func(*mountinfo.Info) bool, error) {
	var stat unix.Stat_t
	if err := unix.Stat(device, &stat); err != nil {
		return nil, fmt.Errorf("stat device %s: %w", device, err)
	}
	node := "/" + filepath.Base(device)
	return func(m *mountinfo.Info) bool {
		number := unix.Mkdev(uint32(m.Major), uint32(m.Minor))
		return number == stat.Rdev || number == stat.Dev && m.Root == node
	}, nil
}

func table(matches func(*mountinfo.Info) bool) ([]*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return !matches(m), false })
	if err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	return mounts, nil
}

// Space is the capacity and usage of a mounted file system, in bytes.
type Space struct {
	Bytes, FreeBytes, AvailableBytes int64
	Inodes, FreeInodes               int64
}

// Measure returns the space of the file system that contains path.
func Measure(path string) (Space, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return Space{}, fmt.Errorf("measure file system: %w", &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	return Space{
		Bytes: int64(stat.Blocks) * stat.Bsize, FreeBytes: int64(stat.Bfree) * stat.Bsize, AvailableBytes: int64(stat.Bavail) * stat.Bsize,
		Inodes: int64(stat.Files), FreeInodes: int64(stat.Ffree),
	}, nil
}
