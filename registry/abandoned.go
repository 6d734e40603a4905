package registry

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// abandonAge is how long nothing must have been written to an upload that a client or a registry has left in the middle, before it is removed.
const abandonAge = 45 * time.Minute

// abandoned removes what pushes left that ended in the middle: uploads, and files that the registry was writing when it was killed.
func (c *collection) abandoned(ctx context.Context) error {
	changed, sizes := map[string]time.Time{}, map[string]int64{}
	err := c.driver.Walk(ctx, rootDir, func(file driver.FileInfo) error {
		what := upload(file.Path())
		if what == "" && !file.IsDir() && strings.HasSuffix(file.Path(), ".tmp") {
			what = file.Path()
		}
		if what == "" {
			return nil
		}
		if file.ModTime().After(changed[what]) {
			changed[what] = file.ModTime()
		}
		if !file.IsDir() {
			sizes[what] += file.Size()
		}
		return nil
	})
	if err != nil && !missing(err) {
		return fmt.Errorf("look for abandoned uploads: %w", err)
	}
	for what, last := range changed {
		if written := c.written(path.Base(what)); written.After(last) {
			last = written
		}
		if c.now.Sub(last) < abandonAge {
			continue
		}
		c.found.Bytes += sizes[what]
		c.found.Uploads = append(c.found.Uploads, strings.TrimPrefix(what, rootDir+"/"))
		if c.request.DryRun {
			continue
		}
		if err := c.driver.Delete(ctx, what); err != nil && !missing(err) {
			return fmt.Errorf("remove abandoned upload %q: %w", what, err)
		}
	}
	return nil
}

// upload is the directory of the upload that a file belongs to, if it does to one.
func upload(file string) string {
	before, after, found := strings.Cut(file, "/"+uploadsDir+"/")
	if !found {
		return ""
	}
	id, _, _ := strings.Cut(after, "/")
	return path.Join(before, uploadsDir, id)
}

// written is when a client last wrote to an upload, as far as this process knows. Files show it themselves; other storage does not, so what a former process
// has begun there counts from the start of this one.
func (c *collection) written(id string) time.Time {
	if c.uploads == nil {
		return time.Time{}
	}
	last := c.uploads.written(id)
	if c.files && last.Equal(c.uploads.start) {
		return time.Time{}
	}
	return last
}
