package local

import (
	"github.com/moby/sys/mountinfo"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// withQuiesced calls f, which copies a volume's image, and ensures that the copy is consistent. For
// a mounted volume, withQuiesced freezes the file system. For a raw block volume, it flushes the
// kernel's buffers. Writes to a raw block volume cannot be suspended. Therefore, a raw block volume
// in use can be copied only if blocks can be shared, because such a copy is atomic. The caller must
// have locked the volume.
func (d *Driver) withQuiesced(file string, f func() error) error {
	device, err := loop.Open(d.volumes.image(file))
	if err != nil {
		return err
	}
	if device == nil {
		return f()
	}
	defer device.Close()
	mounts, err := filesystem.MountsOf(device.Name())
	if err != nil {
		return err
	}
	if dir := mountPoint(mounts); dir != "" {
		return filesystem.WithFrozen(dir, f)
	}
	if len(mounts) > 0 && !d.sharesBlocks {
		return status.Errorf(codes.FailedPrecondition,
			"volume %q is in use as a raw block device, and the file system of %q cannot copy it atomically; stop the pods that use it, or put local volumes on xfs or btrfs",
			d.handle(file), d.volumes.dir)
	}
	if err := device.Sync(); err != nil {
		return err
	}
	return f()
}

// mountPoint returns a directory at which a device's file system is mounted, or "" if there is
// none.
func mountPoint(mounts []*mountinfo.Info) string {
	for _, m := range mounts {
		if filesystem.Type(m.FSType).Supported() {
			return m.Mountpoint
		}
	}
	return ""
}
