package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// IsMounted reports whether anything is mounted at dir. It reads only the kernel's mount table.
// Therefore, it also works if a remote file system hangs, if the mount is a bind mount of the same
// file system, or if dir does not exist.
func IsMounted(dir string) (bool, error) {
	if !filepath.IsAbs(dir) {
		return false, fmt.Errorf("find mount at %q: the path is not absolute", dir)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("read mount table: %w", err)
	}
	// Follow links in the parent directories, but do not access dir itself, because a broken file
	// system might be mounted at dir.
	dir = filepath.Clean(dir)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	for line := range strings.Lines(string(table)) {
		// Example: 36 35 98:0 /source /mount/point rw,noatime ...
		if fields := strings.Fields(line); len(fields) > 4 && unescape(fields[4]) == dir {
			return true, nil
		}
	}
	return false, nil
}

// unescape decodes the mount table's octal escapes, such as \040 for a space.
func unescape(path string) string {
	var plain strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(path[i])
	}
	return plain.String()
}

// Bind bind-mounts the source directory at dir, unless something is already mounted at dir.
func Bind(source, dir string, readOnly bool) error {
	isMounted, err := IsMounted(dir)
	if err != nil {
		return err
	}
	if !isMounted {
		if err := syscall.Mount(source, dir, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s to %s: %w", source, dir, err)
		}
	}
	if !readOnly {
		return nil
	}
	// Remount even if dir was already mounted: an earlier call might have been killed before the
	// remount.
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|flags(dir), ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", dir, err), Unmount(dir))
	}
	return nil
}

// flags returns the mount flags that a remount must repeat.
func flags(dir string) uintptr {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return 0
	}
	const mask = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME | syscall.MS_RELATIME
	return uintptr(stat.Flags) & mask
}

// Unmount unmounts everything at dir, including stacked mounts. It succeeds if nothing is mounted
// or dir does not exist.
func Unmount(dir string) error {
	for {
		isMounted, err := IsMounted(dir)
		if err != nil || !isMounted {
			return err
		}
		if err := syscall.Unmount(dir, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
}
