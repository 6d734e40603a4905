package registry

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// abandonAge is the time without writes after which an upload is considered abandoned.
const abandonAge = 45 * time.Minute

// abandoned removes the remains of interrupted pushes: abandoned uploads, and files that the
// registry was writing when it was killed.
func (c *collection) abandoned(ctx context.Context) error {
	changed, sizes := map[string]time.Time{}, map[string]int64{}
	err := c.driver.Walk(ctx, rootDir, func(file driver.FileInfo) error {
		key := upload(file.Path())
		if key == "" && !file.IsDir() && strings.HasSuffix(file.Path(), ".tmp") {
			key = file.Path()
		}
		if key == "" {
			return nil
		}
		if file.ModTime().After(changed[key]) {
			changed[key] = file.ModTime()
		}
		if !file.IsDir() {
			sizes[key] += file.Size()
		}
		return nil
	})
	if err != nil && !missing(err) {
		return fmt.Errorf("list abandoned uploads: %w", err)
	}
	for key, last := range changed {
		if lastWrite := c.lastWrite(path.Base(key)); lastWrite.After(last) {
			last = lastWrite
		}
		if c.now.Sub(last) < abandonAge {
			continue
		}
		c.garbage.Bytes += sizes[key]
		c.garbage.Uploads = append(c.garbage.Uploads, strings.TrimPrefix(key, rootDir+"/"))
		if c.request.DryRun {
			continue
		}
		if err := c.driver.Delete(ctx, key); err != nil && !missing(err) {
			return fmt.Errorf("remove abandoned upload %q: %w", key, err)
		}
	}
	return nil
}

// upload returns the directory of the upload that a file belongs to, or "" if it belongs to none.
func upload(file string) string {
	before, after, ok := strings.Cut(file, "/"+uploadsDir+"/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(after, "/")
	return path.Join(before, uploadsDir, id)
}

// lastWrite returns the time when a client last wrote to an upload, according to c.uploads. If no
// write is recorded, the result depends on the storage. For file storage, it is the zero time,
// because the modification times of the upload's files then show the last write. For other storage,
// it is the time at which this process started. Without c.uploads, lastWrite returns the zero time.
func (c *collection) lastWrite(id string) time.Time {
	if c.uploads == nil {
		return time.Time{}
	}
	last := c.uploads.lastWrite(id)
	if c.files && last.Equal(c.uploads.start) {
		return time.Time{}
	}
	return last
}
