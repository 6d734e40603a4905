package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

// The methods of this file do what a node does with a volume. Each may be called again at any time, also after a crash in the middle
// of the one before: what is mounted is not mounted again, unmounting what is not mounted succeeds, and what an
// interrupted call left half done, which its marker file shows, is undone first. marker is the path of that file, whose directory
// is made where it is missing; empty, there is none, and an interrupted call passes for a complete one.

// ErrHalfDone is in the error of a call that failed and could not be undone.
var ErrHalfDone = errors.New("undo mount that failed or was interrupted")

// Stage mounts the volume's device at dir for all pods of the node: with mountdevice, or, where the driver lacks that and there is a device, by
// formatting it if it is empty and mounting it.
func (d *Driver) Stage(ctx context.Context, volume Volume, device, dir, marker string) error {
	done, err := d.begin(ctx, dir, marker, d.UnmountDevice)
	if done || err != nil {
		return err
	}
	err = d.MountDevice(ctx, dir, device, volume)
	if errors.Is(err, ErrNotSupported) {
		err = formatAndMount(device, dir, volume)
	}
	if err != nil {
		return errors.Join(err, d.undo(dir, marker, d.UnmountDevice))
	}
	return finish(marker)
}

// Unstage undoes Stage: with unmountdevice, or by unmounting.
func (d *Driver) Unstage(ctx context.Context, dir, marker string) error {
	if there, err := mounted(dir); err != nil {
		return err
	} else if there {
		if err := orUnmount(ctx, dir, d.UnmountDevice); err != nil {
			return err
		}
	}
	return errors.Join(removeDir(dir), finish(marker))
}

// Publish makes the volume appear at dir for one pod: with mount, or, where the driver lacks that, by binding what Stage mounted at staged, read-only
// for a read-only volume. staged is empty for a volume that is not staged. Then it runs prepare, which may be nil and gives the
// files their owner; only after that the volume counts as published.
func (d *Driver) Publish(ctx context.Context, mounting Mounting, dir, staged, marker string, prepare func() error) error {
	done, err := d.begin(ctx, dir, marker, d.Unmount)
	if done || err != nil {
		return err
	}
	err = d.Mount(ctx, dir, mounting)
	if errors.Is(err, ErrNotSupported) {
		err = bindStaged(staged, dir, mounting.ReadOnly)
	}
	if err == nil && prepare != nil {
		err = prepare()
	}
	if err != nil {
		return errors.Join(err, d.undo(dir, marker, d.Unmount))
	}
	return finish(marker)
}

// Unpublish undoes Publish: with unmount, or by unmounting. The driver is called also where nothing is mounted, because some
// drivers write files instead; its failure counts then only if there is something in the directory.
func (d *Driver) Unpublish(ctx context.Context, dir, marker string) error {
	there, err := exists(dir)
	if err != nil {
		return err
	}
	if there {
		before, err := mounted(dir)
		if err != nil {
			return err
		}
		if err := orUnmount(ctx, dir, d.Unmount); err != nil && (before || os.Remove(dir) != nil) {
			return err
		}
	}
	return errors.Join(removeDir(dir), finish(marker))
}

// Done says whether there is nothing to do for Stage or Publish: what they make is mounted at dir, serves, and was not interrupted. It needs no
// driver, so that it holds also after the driver has been removed.
func Done(dir, marker string) (bool, error) {
	there, err := mounted(dir)
	if err != nil || !there {
		return false, err
	}
	interrupted, err := exists(marker)
	if err != nil || interrupted {
		return false, err
	}
	// A broken mount, such as that of a FUSE daemon that has died, is made anew.
	_, broken := os.Stat(dir)
	return broken == nil, nil
}

// begin makes dir and the marker, and undoes what an earlier call left half done. done says that there is nothing to do.
func (d *Driver) begin(ctx context.Context, dir, marker string, reverse func(context.Context, string) error) (done bool, err error) {
	if done, err := Done(dir, marker); done || err != nil {
		return done, err
	}
	there, err := mounted(dir)
	if err != nil {
		return false, err
	}
	if there {
		if err := orUnmount(ctx, dir, reverse); err != nil {
			return false, fmt.Errorf("%w: %w", ErrHalfDone, err)
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return false, fmt.Errorf("create volume's directory: %w", err)
	}
	if marker == "" {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(marker), 0o750); err != nil {
		return false, fmt.Errorf("create directory of volume's marker: %w", err)
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return false, fmt.Errorf("create volume's marker: %w", err)
	}
	return false, nil
}

// undo cleans up after a call that failed, so that the next one starts afresh: Kubernetes takes the mount of a failed call for a success.
// It has its own time, because the call's may be over. A directory that the driver wrote files into is left to the next call.
func (d *Driver) undo(dir, marker string, reverse func(context.Context, string) error) error {
	there, err := mounted(dir)
	if err != nil {
		return err
	}
	if there {
		if err := orUnmount(context.Background(), dir, reverse); err != nil {
			return fmt.Errorf("%w: %w", ErrHalfDone, err)
		}
	}
	_ = os.Remove(dir)
	return finish(marker)
}

// orUnmount lets the driver undo a mount, and undoes what is still mounted then where the driver lacks the operation or is gone.
func orUnmount(ctx context.Context, dir string, reverse func(context.Context, string) error) error {
	err := reverse(ctx, dir)
	if errors.Is(err, ErrNotSupported) || errors.Is(err, ErrGone) {
		return unmountAll(dir)
	}
	return err
}

// finish removes a marker.
func finish(marker string) error {
	if marker == "" {
		return nil
	}
	if err := os.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume's marker: %w", err)
	}
	return nil
}

// formatAndMount mounts a device, after it has made a file system there if it finds none and the volume is not read-only. A driver without
// attach operations has no device, and nothing to do.
func formatAndMount(device, dir string, volume Volume) error {
	if device == "" {
		return nil
	}
	access := "rw"
	if volume.ReadOnly {
		access = "ro"
	}
	mounter := mount.NewSafeFormatAndMount(mount.New(""), exec.New())
	if err := mounter.FormatAndMount(device, dir, volume.FSType, []string{access}); err != nil {
		return fmt.Errorf("mount device %s at %s: %w", device, dir, err)
	}
	return nil
}

// bindStaged binds what is mounted at staged. Nothing mounted there means that the driver has no operation at all that mounts.
func bindStaged(staged, dir string, readOnly bool) error {
	there, err := mounted(staged)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("bind volume to %s: nothing is mounted at %q; the driver must have mount, or mountdevice with a device", dir, staged)
	}
	return bind(staged, dir, readOnly)
}

// exists says whether there is anything at path; a broken mount is something.
func exists(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	_, err := os.Lstat(path)
	switch {
	case err == nil, mount.IsCorruptedMnt(err):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("look at %s: %w", path, err)
}
