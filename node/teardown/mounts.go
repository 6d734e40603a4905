package teardown

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

const (
	// busyDelay is the delay between two attempts, and busyTimeout is the timeout for all attempts:
	// the kernel releases resources shortly after a process has exited.
	busyDelay, busyTimeout = 50 * time.Millisecond, 2 * time.Second
)

// Mounts unmounts everything below the directories, with the latest mount first, and any directory
// that is mounted onto itself, such as the kubelet's. If a file system from another device is
// mounted at one of the directories, that mount is kept, because it is older.
//
// A mount that is still busy after two seconds is detached lazily. It disappears from the host's
// tree immediately, and is released when its last user exits. detached contains a sentence about
// each such mount, with its users. The error lists the mounts that remain.
func Mounts(dirs ...string) (detached []string, err error) {
	deadline := time.Now().Add(busyTimeout)
	for {
		points, err := mountsOf(dirs)
		if err != nil || len(points) == 0 {
			return detached, err
		}
		last := time.Now().After(deadline)
		var errs []error
		for _, point := range points {
			note, err := unmount(point, last)
			if err != nil {
				errs = append(errs, err)
			}
			if note != "" {
				detached = append(detached, note)
			}
		}
		if last {
			return detached, errors.Join(errs...)
		}
		if len(errs) > 0 {
			time.Sleep(busyDelay)
		}
	}
}

// unmount unmounts the mount at point. If lazy is set, it detaches a busy mount and returns a
// sentence about it in detached.
func unmount(point string, lazy bool) (detached string, err error) {
	err = unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return "", nil // EINVAL: no longer a mount point
	}
	if !lazy {
		return "", err
	}
	users := describe(usersOf(point))
	if lazyErr := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); lazyErr != nil {
		return "", fmt.Errorf("mount %q remains: %w: %s", point, lazyErr, users)
	}
	return fmt.Sprintf("mount %q was detached lazily, but stays in use: %s", point, users), nil
}

// mountsOf returns the mount points to unmount, in order. A mount point occurs once for each of its
// mounts.
func mountsOf(dirs []string) ([]string, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	devices := map[int]string{}
	for _, m := range mounts {
		devices[m.ID] = fmt.Sprintf("%d:%d", m.Major, m.Minor)
	}
	var points []string
	for _, m := range mounts {
		for _, dir := range dirs {
			dir, err := resolve(dir)
			if err != nil {
				return nil, err
			}
			ontoItself := m.Mountpoint == dir && devices[m.ID] == devices[m.Parent]
			if strings.HasPrefix(m.Mountpoint, strings.TrimSuffix(dir, "/")+"/") || ontoItself {
				points = append(points, m.Mountpoint)
				break
			}
		}
	}
	// The kernel lists mounts in creation order unless mounts have been moved, so also sort deeper
	// mounts first.
	slices.Reverse(points)
	slices.SortStableFunc(points, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return points, nil
}

// resolve returns dir as an absolute path without symbolic links, which is how the kernel lists
// mount points. If dir does not exist, resolve only makes the path absolute.
func resolve(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if absolute == "/" {
		return "", errors.New("unmount: the directory must not be /")
	}
	if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
		return resolved, nil
	}
	return absolute, nil
}
