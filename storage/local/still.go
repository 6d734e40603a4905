package local

import (
	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// still runs f, which copies the image of a volume, so that the copy is of one moment: the file system of a mounted volume is frozen, and what the kernel
// keeps of a raw block volume is written. A raw block volume that is in use can be copied only where f takes a moment, because nobody can be
// asked to wait. The caller has taken the volume.
func (d *Driver) still(file string, f func() error) error {
	device, err := loop.Open(d.volumes.image(file))
	if err != nil {
		return err
	}
	if device == nil {
		return f()
	}
	defer device.Close()
	mounts, err := filesystem.Of(device.Name())
	if err != nil {
		return err
	}
	if dir := mountedAt(mounts); dir != "" {
		return filesystem.Frozen(dir, f)
	}
	if len(mounts) > 0 && !d.shares {
		return status.Errorf(codes.FailedPrecondition,
			"volume %q is in use as a raw block device, and the file system of %q cannot copy it in one moment: end the pods that use it, or keep local volumes on xfs or btrfs",
			d.handle(file), d.volumes.dir)
	}
	if err := device.Sync(); err != nil {
		return err
	}
	return f()
}

// mountedAt is a place where a file system is mounted, among the mounts of a device.
func mountedAt(mounts []*mountinfo.Info) string {
	for _, m := range mounts {
		if filesystem.Type(m.FSType).Known() {
			return m.Mountpoint
		}
	}
	return ""
}
