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

// Mount mounts the device at dir with options as mount(8) takes them. Blocks of removed files go back to the device, unless
// the options say nodiscard.
func Mount(t Type, device, dir string, options []string) error {
	options = slices.Clone(options)
	if !slices.Contains(options, "nodiscard") {
		options = append(options, "discard")
	}
	if t == XFS {
		options = append(options, "nouuid") // copies of a volume have its identity
	}
	if err := mount.Mount(device, dir, string(t), strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mount %s file system: %w", t, err)
	}
	return nil
}

// MountEmpty mounts an empty directory at dir that nobody can write to, and makes dir if it does not exist.
func MountEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if err := mount.Mount("none", dir, "tmpfs", "ro,nosuid,nodev,noexec,size=4k,mode=755"); err != nil {
		return fmt.Errorf("mount empty directory: %w", err)
	}
	return nil
}

// Bind makes the directory or device source appear at target too.
func Bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	return SetReadOnly(target)
}

// SetReadOnly makes the mount at target read-only, and no other mount of the same file system.
func SetReadOnly(target string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	// A remount replaces all flags of the mount, so those that it has are given again.
	const keep = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	flags := uintptr(stat.Flags) & keep
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// Unmount undoes every mount at path, the last one first. Nothing happens where none is.
func Unmount(path string) error {
	for {
		mounts, err := At(path)
		if err != nil || len(mounts) == 0 {
			return err
		}
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}

// At returns the mounts at path, the last one last, by the kernel's mount table alone: nothing looks into what is mounted there.
func At(path string) ([]*mountinfo.Info, error) {
	path = filepath.Clean(path)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(parent, filepath.Base(path))
	}
	return table(func(m *mountinfo.Info) bool { return m.Mountpoint == path })
}

// Of returns the mounts of a block device: its file system, wherever that is mounted, and the binds of the device itself.
func Of(device string) ([]*mountinfo.Info, error) {
	matches, err := IsOf(device)
	if err != nil {
		return nil, err
	}
	return table(matches)
}

// IsOf tells mounts of a block device from others.
func IsOf(device string) (func(*mountinfo.Info) bool, error) {
	var stat unix.Stat_t
	if err := unix.Stat(device, &stat); err != nil {
		return nil, fmt.Errorf("look at device %s: %w", device, err)
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

// Space is what a mounted file system has.
type Space struct {
	Bytes, FreeBytes, AvailableBytes int64
	Inodes, FreeInodes               int64
}

// Measure tells how much space the file system has that path lies in.
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
