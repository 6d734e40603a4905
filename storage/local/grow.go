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

// growImage lets a file system grow that cannot while it is mounted. The program that does it must not be killed, so it works on a copy, which
// takes the image's place when it is done.
func (d *Driver) growImage(ctx context.Context, file string, v volume) error {
	path, larger := d.volumes.image(file), d.volumes.larger(file)
	if device, err := loop.Find(path); err != nil {
		return err
	} else if device != "" {
		return status.Errorf(codes.FailedPrecondition, "volume %q must grow and is in use: %s has it", d.handle(file), device)
	}
	allocated, err := image.Allocated(path)
	if err == nil && !d.shares {
		err = d.promise(allocated)
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
