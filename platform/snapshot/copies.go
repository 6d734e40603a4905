package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// Copies maintains copies of the snapshots in a second storage location, such as S3.
type Copies struct {
	// Open opens the storage. It is called for each attempt, because the storage credentials can
	// change.
	Open func(context.Context) (driver.StorageDriver, error)
	// Dir is an absolute path in the storage. Each master must have its own directory.
	Dir string
}

// sync uploads the snapshots that are missing from the storage, and removes the snapshots that no
// longer exist in the directory.
func (c *Copies) sync(ctx context.Context, files []File) error {
	storage, err := c.Open(ctx)
	if err != nil {
		return fmt.Errorf("open snapshot storage: %w", err)
	}
	stored, err := storage.List(ctx, c.Dir)
	if missing := (driver.PathNotFoundError{}); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("list snapshot copies: %w", err)
	}
	var local []string
	for _, file := range files {
		to := path.Join(c.Dir, filepath.Base(file.Path))
		local = append(local, to)
		if slices.Contains(stored, to) {
			continue
		}
		if err := upload(ctx, storage, file.Path, to); err != nil {
			return fmt.Errorf("copy snapshot %q: %w", file.Path, err)
		}
	}
	for _, former := range stored {
		if _, isSnapshot := timeOf(path.Base(former)); !isSnapshot || slices.Contains(local, former) {
			continue
		}
		if err := storage.Delete(ctx, former); err != nil {
			return fmt.Errorf("remove snapshot copy: %w", err)
		}
	}
	return nil
}

// upload writes a file to the storage. The file becomes visible only when it is complete.
func upload(ctx context.Context, storage driver.StorageDriver, from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	writer, err := storage.Writer(ctx, to, false)
	if err != nil {
		return err
	}
	if _, err := io.Copy(writer, file); err != nil {
		return errors.Join(err, writer.Cancel(ctx), writer.Close())
	}
	return errors.Join(writer.Commit(ctx), writer.Close())
}
