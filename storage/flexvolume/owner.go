package flexvolume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errUntrusted is the error for a driver that a user other than root can replace.
var errUntrusted = errors.New("the driver runs as root, so only root must be able to change it")

// maxLinks is the maximum number of symbolic links in a path, as in the kernel.
const maxLinks = 40

// startTrusted starts a driver unless a user other than root can change it.
func startTrusted(path string, args []string) (*process, error) {
	if err := checkOwner(path); err != nil {
		return nil, err
	}
	return startProcess(path, args, workingDir)
}

// checkOwner returns an error if a user other than root and this process's user can change or
// replace the file at path. It checks the file, every directory above it, and the symbolic links in
// the path with their targets.
//
// A driver is checked before each call. Nothing can change between the check and the call, because
// the check succeeds only if no other user can change any of the checked files.
func checkOwner(path string) error {
	return checkComponents("/", strings.Split(filepath.Clean(path), "/"), 0)
}

// checkComponents checks dir, and each component of the path below dir that rest contains. dir must
// not contain symbolic links.
func checkComponents(dir string, rest []string, links int) error {
	if err := checkMode(dir); err != nil {
		return err
	}
	for n, name := range rest {
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(dir, name) // also correct for "..", because dir has no links
		info, err := os.Lstat(next)
		if err != nil {
			return fmt.Errorf("check driver owner: %w", err)
		}
		if info.Mode().Type() != fs.ModeSymlink {
			if err := checkMode(next); err != nil {
				return err
			}
			dir = next
			continue
		}
		// In a directory such as /tmp, the link's owner can replace the link.
		if err := owned(next, info); err != nil {
			return err
		}
		target, err := os.Readlink(next)
		if err != nil {
			return fmt.Errorf("check driver owner: %w", err)
		}
		if links == maxLinks {
			return fmt.Errorf("check driver owner: %s: %w", next, syscall.ELOOP)
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		return checkComponents(dir, append(strings.Split(target, "/"), rest[n+1:]...), links+1)
	}
	return nil
}

// checkMode checks the mode of one file or directory. In a directory with the sticky bit, such as
// /tmp, users cannot replace other users' files.
func checkMode(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("check driver owner: %w", err)
	}
	if err := owned(path, info); err != nil {
		return err
	}
	const others = 0o022
	if info.Mode().Perm()&others != 0 && (!info.IsDir() || info.Mode()&fs.ModeSticky == 0) {
		return fmt.Errorf("%w; %s has mode %04o; run chmod go-w %[2]s", errUntrusted, path, info.Mode().Perm())
	}
	return nil
}

// owned checks that a file is owned by root or by this process's user.
func owned(path string, info fs.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%w; %s belongs to user %d; run chown -h root %[2]s", errUntrusted, path, owner)
	}
	return nil
}
