package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

// Stage, Unstage, Publish and Unpublish can be repeated at any time, even if an earlier call was
// interrupted by a crash. They do not mount a volume twice, and unmounting a volume that is not
// mounted succeeds. Stage and Publish create a marker file, which exists until the call is
// complete. If a call finds the marker of an interrupted call, it first undoes the interrupted
// call. marker is the path of this file. Its directory is created if it does not exist. If marker
// is empty, an interrupted call is treated as complete.

// ErrPartialMount is returned if a failed or interrupted call could not be undone.
var ErrPartialMount = errors.New("undo mount that failed or was interrupted")

// Stage mounts the volume's device at dir, for all pods on the node. It calls mountdevice. If the
// driver does not support mountdevice and there is a device, Stage formats the device, if it is
// empty, and mounts it.
func (d *Driver) Stage(ctx context.Context, volume Volume, device, dir, marker string) error {
	complete, err := d.begin(ctx, dir, marker, d.UnmountDevice)
	if complete || err != nil {
		return err
	}
	err = d.MountDevice(ctx, dir, device, volume)
	if errors.Is(err, ErrNotSupported) {
		err = formatAndMount(device, dir, volume)
	}
	if err != nil {
		return errors.Join(err, d.undo(dir, marker, d.UnmountDevice))
	}
	return removeMarker(marker)
}

// Unstage undoes Stage with unmountdevice, or with umount(8) if the driver does not support
// unmountdevice or no longer exists.
func (d *Driver) Unstage(ctx context.Context, dir, marker string) error {
	if isMounted, err := mounted(dir); err != nil {
		return err
	} else if isMounted {
		if err := reverseOrUnmount(ctx, dir, d.UnmountDevice); err != nil {
			return err
		}
	}
	return errors.Join(removeDir(dir), removeMarker(marker))
}

// Publish mounts the volume at dir, for one pod. It calls mount. If the driver does not support
// mount, Publish bind-mounts stagedDir, which is the directory at which Stage mounted the device.
// The bind mount of a read-only volume is read-only. stagedDir is empty for a volume that is not
// staged. Publish then calls prepare, if it is not nil, to set the owner of the files. The volume
// is published only if prepare succeeds.
func (d *Driver) Publish(ctx context.Context, mounting MountRequest, dir, stagedDir, marker string, prepare func() error) error {
	complete, err := d.begin(ctx, dir, marker, d.Unmount)
	if complete || err != nil {
		return err
	}
	err = d.Mount(ctx, dir, mounting)
	if errors.Is(err, ErrNotSupported) {
		err = bindStaged(stagedDir, dir, mounting.ReadOnly)
	}
	if err == nil && prepare != nil {
		err = prepare()
	}
	if err != nil {
		return errors.Join(err, d.undo(dir, marker, d.Unmount))
	}
	return removeMarker(marker)
}

// Unpublish undoes Publish with unmount, or with umount(8) if the driver does not support unmount
// or no longer exists. It calls the driver even if nothing is mounted, because some drivers write
// files instead of mounting. If nothing was mounted, Unpublish returns the driver's error only if
// the directory is not empty.
func (d *Driver) Unpublish(ctx context.Context, dir, marker string) error {
	present, err := exists(dir)
	if err != nil {
		return err
	}
	if present {
		wasMounted, err := mounted(dir)
		if err != nil {
			return err
		}
		if err := reverseOrUnmount(ctx, dir, d.Unmount); err != nil && (wasMounted || os.Remove(dir) != nil) {
			return err
		}
	}
	return errors.Join(removeDir(dir), removeMarker(marker))
}

// MountComplete reports whether Stage or Publish has nothing to do: a file system is mounted at
// dir, it is accessible, and the call was not interrupted. It does not need the driver, so it also
// works after the driver has been removed.
func MountComplete(dir, marker string) (bool, error) {
	isMounted, err := mounted(dir)
	if err != nil || !isMounted {
		return false, err
	}
	interrupted, err := exists(marker)
	if err != nil || interrupted {
		return false, err
	}
	// A broken file system, for example after a FUSE daemon has crashed, must be mounted again.
	_, statErr := os.Stat(dir)
	return statErr == nil, nil
}

// begin undoes an interrupted call, then creates dir and the marker. complete is true if there is
// nothing to do.
func (d *Driver) begin(ctx context.Context, dir, marker string, reverse func(context.Context, string) error) (complete bool, err error) {
	if complete, err := MountComplete(dir, marker); complete || err != nil {
		return complete, err
	}
	isMounted, err := mounted(dir)
	if err != nil {
		return false, err
	}
	if isMounted {
		if err := reverseOrUnmount(ctx, dir, reverse); err != nil {
			return false, fmt.Errorf("%w: %w", ErrPartialMount, err)
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return false, fmt.Errorf("create volume's directory: %w", err)
	}
	if marker == "" {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(marker), 0o750); err != nil {
		return false, fmt.Errorf("create volume marker directory: %w", err)
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return false, fmt.Errorf("create volume's marker: %w", err)
	}
	return false, nil
}

// undo cleans up after a failed call, because Kubernetes treats an existing mount as success. It
// does not use the call's context, which might have expired. It leaves the cleanup of a directory
// that contains files to the next call.
func (d *Driver) undo(dir, marker string, reverse func(context.Context, string) error) error {
	isMounted, err := mounted(dir)
	if err != nil {
		return err
	}
	if isMounted {
		if err := reverseOrUnmount(context.Background(), dir, reverse); err != nil {
			return fmt.Errorf("%w: %w", ErrPartialMount, err)
		}
	}
	_ = os.Remove(dir)
	return removeMarker(marker)
}

// reverseOrUnmount calls the driver to undo a mount. If the driver does not support the operation
// or no longer exists, it unmounts everything at dir.
func reverseOrUnmount(ctx context.Context, dir string, reverse func(context.Context, string) error) error {
	err := reverse(ctx, dir)
	if errors.Is(err, ErrNotSupported) || errors.Is(err, ErrGone) {
		return unmountAll(dir)
	}
	return err
}

func removeMarker(marker string) error {
	if marker == "" {
		return nil
	}
	if err := os.Remove(marker); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove volume's marker: %w", err)
	}
	return nil
}

// formatAndMount mounts a device. If the device has no file system and the volume is not read-only,
// it first creates a file system. A driver without attach operations has no device, so there is
// nothing to do.
func formatAndMount(device, dir string, volume Volume) error {
	if device == "" {
		return nil
	}
	if err := checkFSType(volume.FSType); err != nil {
		return err
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

// deviceTypes lists the file system types that store their data on a device. The list does not come
// from /proc/filesystems, because a type is listed there only after its kernel module has been
// loaded, and mounting a file system loads the module.
var deviceTypes = []string{
	"bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660", "jfs", "msdos",
	"nilfs2", "ntfs", "ntfs3", "reiserfs", "squashfs", "udf", "vfat", "xfs",
}

// checkFSType returns an error unless fsType is in deviceTypes or is empty, which means the default
// type. The author of a pod with an inline volume chooses the type. A type such as proc, which
// ignores the device, would give the pod access to files of the host. In a type such as fuse.NAME,
// the part after the period is a command, which would run on the host.
func checkFSType(fsType string) error {
	if fsType != "" && !slices.Contains(deviceTypes, fsType) {
		return fmt.Errorf("mount device: file system type %q is not supported; use one of: %s", fsType, strings.Join(deviceTypes, ", "))
	}
	return nil
}

// bindStaged bind-mounts stagedDir at dir. It returns an error if nothing is mounted at stagedDir,
// because the driver then supports neither mount nor mountdevice.
func bindStaged(stagedDir, dir string, readOnly bool) error {
	isMounted, err := mounted(stagedDir)
	if err != nil {
		return err
	}
	if !isMounted {
		return fmt.Errorf("bind volume to %s: nothing is mounted at %q; the driver must support mount, or mountdevice with a device", dir, stagedDir)
	}
	return bind(stagedDir, dir, readOnly)
}

// exists reports whether path exists. It returns true for the mount point of a broken mount.
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
	return false, fmt.Errorf("stat %s: %w", path, err)
}
