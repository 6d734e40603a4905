package registry

import (
	"context"
	"errors"
	"io/fs"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// directories is storage whose directories can disappear during a walk. For example, an upload's
// directory is removed when the upload ends. Distribution's own walk stops or fails at a removed
// directory.
type directories struct{ driver.StorageDriver }

// Walk implements driver.StorageDriver.
func (d directories) Walk(ctx context.Context, from string, visit driver.WalkFn, options ...func(*driver.WalkOptions)) error {
	return driver.WalkFallback(ctx, below{d.StorageDriver, from}, from, visit, options...)
}

// below is the storage during a walk that starts at from.
type below struct {
	driver.StorageDriver
	from string
}

// List implements driver.StorageDriver. A removed directory below the start of the walk has no
// entries.
func (b below) List(ctx context.Context, path string) ([]string, error) {
	entries, err := b.StorageDriver.List(ctx, path)
	if path != b.from && removedMeanwhile(err) {
		return nil, nil
	}
	return entries, err
}

// removedMeanwhile reports whether an error means that a directory was removed, possibly while it
// was being read.
func removedMeanwhile(err error) bool {
	var cause driver.Error // driver.Error does not implement Unwrap
	return missing(err) || errors.As(err, &cause) && errors.Is(cause.Detail, fs.ErrNotExist)
}
