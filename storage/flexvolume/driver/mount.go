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

// IsMounted says whether something is mounted at dir, by the kernel's mount table: also where a file system of another machine hangs, where
// the mount is a bind of the same file system, and where dir does not exist.
func IsMounted(dir string) (bool, error) {
	if !filepath.IsAbs(dir) {
		return false, fmt.Errorf("look for mount at %q: the path is not absolute", dir)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, fmt.Errorf("read mount table: %w", err)
	}
	// Links in the directories above are followed, and nothing looks into what may be mounted at dir itself.
	dir = filepath.Clean(dir)
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	for line := range strings.Lines(string(table)) {
		// 36 35 98:0 /source /mount/point rw,noatime ...
		if fields := strings.Fields(line); len(fields) > 4 && unescape(fields[4]) == dir {
			return true, nil
		}
	}
	return false, nil
}

// unescape undoes what the mount table does to white space and backslashes: \040.
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

// Bind makes the directory source appear at dir, unless something is mounted there already.
func Bind(source, dir string, readOnly bool) error {
	there, err := IsMounted(dir)
	if err != nil {
		return err
	}
	if !there {
		if err := syscall.Mount(source, dir, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s to %s: %w", source, dir, err)
		}
	}
	if !readOnly {
		return nil
	}
	// Also where it is mounted: an earlier call may have been killed before this.
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|flags(dir), ""); err != nil {
		return errors.Join(fmt.Errorf("make %s read-only: %w", dir, err), Unmount(dir))
	}
	return nil
}

// flags are those of a mount which a remount would otherwise take away.
func flags(dir string) uintptr {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return 0
	}
	const keep = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME | syscall.MS_RELATIME
	return uintptr(stat.Flags) & keep
}

// Unmount unmounts what is mounted at dir, all of it if several mounts lie on each other. It succeeds where nothing is, and where dir does not exist.
func Unmount(dir string) error {
	for {
		there, err := IsMounted(dir)
		if err != nil || !there {
			return err
		}
		if err := syscall.Unmount(dir, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
}
