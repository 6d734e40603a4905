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
	// busyDelay is the time between two attempts at something busy, busyTime how long to try: the kernel releases what an ended process held
	// a moment after its end.
	busyDelay, busyTime = 50 * time.Millisecond, 2 * time.Second
)

// Mounts unmounts everything below the directories, the last mounted first, and a directory that is mounted onto itself, as kubelet does
// with its own. A file system of another device that is mounted at one of the directories themselves stays: it was there before.
//
// A mount that stays busy for two seconds is detached lazily: it is gone from the host's tree at once, and in fact when its last user
// ends. The error names these and their users.
func Mounts(dirs ...string) error {
	deadline := time.Now().Add(busyTime)
	for {
		points, err := mountsOf(dirs)
		if err != nil {
			return err
		}
		if len(points) == 0 {
			return nil
		}
		last := time.Now().After(deadline)
		var errs []error
		for _, point := range points {
			if err := unmount(point, last); err != nil {
				errs = append(errs, err)
			}
		}
		if last {
			return errors.Join(errs...)
		}
		if len(errs) > 0 {
			time.Sleep(busyDelay)
		}
	}
}

// unmount unmounts what is mounted at point, lazily if that is all that is left to do.
func unmount(point string, lazy bool) error {
	err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
	if err == nil || err == unix.EINVAL || err == unix.ENOENT {
		return nil // EINVAL: it is not a mount point any more.
	}
	if !lazy {
		return err
	}
	users := describe(usersOf(point))
	if lazyErr := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); lazyErr != nil {
		return fmt.Errorf("mount %q remains: %w: %s", point, lazyErr, users)
	}
	return fmt.Errorf("mount %q was detached, but stays in use: %s", point, users)
}

// mountsOf returns the mount points to unmount, in the order to do it. A point appears once for each mount on it.
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
	// The kernel lists mounts in the order in which they were made, unless some were moved: then the deeper one has to go first.
	slices.Reverse(points)
	slices.SortStableFunc(points, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	return points, nil
}

// resolve returns dir absolute and without symbolic links, as the kernel lists mount points. A dir that does not exist stays as it is.
func resolve(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if absolute == "/" {
		return "", errors.New("unmount: refuse to unmount everything below /")
	}
	if resolved, err := filepath.EvalSymlinks(absolute); err == nil {
		return resolved, nil
	}
	return absolute, nil
}
