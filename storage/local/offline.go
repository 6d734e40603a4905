package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// expandOffline expands a file system that this process must not expand while it is mounted.
// Killing resize2fs would damage the file system, so resize2fs works on a copy, which replaces the
// image on success.
func (d *Driver) expandOffline(ctx context.Context, file string, v volume) error {
	path, larger := d.volumes.image(file), d.volumes.expandedImage(file)
	if device, err := loop.Find(path); err != nil {
		return err
	} else if device != "" {
		return status.Errorf(codes.FailedPrecondition, "volume %q must be expanded but is in use by device %s", d.handle(file), device)
	}
	allocated, err := image.Allocated(path)
	if err == nil && !d.sharesBlocks {
		err = d.checkCapacity(allocated)
	}
	if err == nil {
		_, err = image.Copy(ctx, larger, path)
	}
	if err == nil {
		err = filesystem.GrowImage(ctx, v.Filesystem, larger)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(larger))
	}
	if err := os.Rename(larger, path); err != nil {
		return fmt.Errorf("replace image: %w", err)
	}
	return atomicfile.SyncFolder(d.volumes.dir)
}
