package registry

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/opencontainers/go-digest"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// uploadAge is the minimum age of garbage. Younger manifests and blobs without references can
// belong to pushes that are still in progress.
const uploadAge = time.Hour

// collection is a garbage collection run. The registry stores no manifests during a run.
type collection struct {
	*store
	request record.GarbageRequest
	// images maps each Image object's name to its blobs. streams maps each repository to the images
	// in its image stream.
	images  map[string][]string
	streams map[string][]string
	now     time.Time
	// skip contains projects whose repositories are treated as removed.
	skip map[string]bool
	// promises, if set, contains the blobs that must be kept.
	promises *promises
	// uploads, if set, contains the times of clients' last writes to uploads.
	uploads *uploads

	dryRemoved map[string]bool // images that a dry run does not remove but treats as removed
	candidates map[string]bool // removable blobs; nil means all blobs
	inUse      map[string]bool // blobs that are kept if they are linked
	linked     map[string]bool // blobs that remaining repository links refer to
	garbage    record.Garbage
	visits     []*visit
}

// run finds and removes garbage.
func (c *collection) run(ctx context.Context) (record.Garbage, error) {
	c.inUse, c.dryRemoved, c.linked = map[string]bool{}, map[string]bool{}, map[string]bool{}
	removed := map[string]map[string]bool{} // manifests to remove, by repository
	if !c.request.Everything {
		c.candidates = map[string]bool{}
	}
	for _, image := range c.request.Images {
		if _, exists := c.images[image.Digest]; exists && !c.request.DryRun {
			continue // the manifest was pushed again
		}
		c.dryRemoved[image.Digest] = c.request.DryRun
		for _, blob := range append(image.Blobs, image.Digest) {
			if c.candidates != nil {
				c.candidates[blob] = true
			}
		}
		for _, repository := range image.Repositories {
			if removed[repository] == nil {
				removed[repository] = map[string]bool{}
			}
			for _, manifest := range append(image.Blobs, image.Digest) {
				removed[repository][manifest] = true
			}
		}
	}
	c.keepImages()
	err := c.content.(distribution.RepositoryEnumerator).Enumerate(ctx, func(name string) error {
		if project, _, _ := strings.Cut(name, "/"); c.skip[project] {
			return nil
		}
		if err := c.visit(ctx, name, removed[name]); err != nil {
			return fmt.Errorf("read repository %q: %w", name, err)
		}
		return nil
	})
	if err != nil && !missing(err) {
		return c.garbage, err
	}
	if err := c.removeUnused(ctx); err != nil {
		return c.garbage, err
	}
	if !c.request.Everything {
		return c.garbage, nil
	}
	return c.garbage, c.abandoned(ctx)
}

// keepImages marks the blobs of the cluster's Image objects as in use.
func (c *collection) keepImages() {
	for name, blobs := range c.images {
		if c.dryRemoved[name] {
			continue
		}
		c.inUse[name] = true
		for _, blob := range blobs {
			c.inUse[blob] = true
		}
	}
}

// removeUnused removes layers from repositories and then blobs from the storage, so that no
// repository ever refers to a missing blob.
//
// It removes a blob that no repository links to, even if an Image object refers to the blob. A
// manifest can refer to layers that its project never contained, such as another project's layers.
// No quota counts these layers, and no client can pull them.
func (c *collection) removeUnused(ctx context.Context) error {
	vacuum := storage.NewVacuum(ctx, c.driver)
	for _, v := range c.visits {
		for id := range v.keep {
			c.linked[id.String()] = true
		}
		for _, layer := range v.layers {
			if v.inUse[layer.name.String()] || !c.removable(ctx, layer, path.Join(linkDir(v.name, layersDir, layer.name), linkFile)) {
				c.linked[layer.id.String()] = true
				continue
			}
			promised, err := c.promises.unless(v.name, layer.name, func() error {
				if c.request.DryRun {
					return nil
				}
				return vacuum.RemoveLayer(v.name, layer.name)
			})
			if err != nil && !missing(err) {
				return fmt.Errorf("remove layer %q of repository %q: %w", layer.name, v.name, err)
			}
			if promised {
				c.inUse[layer.id.String()], c.linked[layer.id.String()] = true, true
				continue
			}
			c.garbage.Layers = append(c.garbage.Layers, record.GarbageLink{Repository: v.name, Digest: layer.name.String()})
			if c.candidates != nil {
				c.candidates[layer.id.String()] = true // requests contain only the layer's name
			}
		}
	}
	var unused []digest.Digest
	err := c.content.Blobs().Enumerate(ctx, func(id digest.Digest) error {
		if !(c.inUse[id.String()] && c.linked[id.String()]) && c.removable(ctx, link{id, id}, blobPath(id)) {
			unused = append(unused, id)
		}
		return nil
	})
	if err != nil && !missing(err) {
		return fmt.Errorf("list blobs: %w", err)
	}
	for _, id := range unused {
		if err := c.removeBlob(ctx, vacuum, id); err != nil {
			return fmt.Errorf("remove blob %q: %w", id, err)
		}
	}
	return nil
}

// removeBlob removes a blob from the storage, unless the blob is promised to a push.
func (c *collection) removeBlob(ctx context.Context, vacuum storage.Vacuum, id digest.Digest) error {
	var size int64
	promised, err := c.promises.unless("", id, func() error {
		if file, err := c.driver.Stat(ctx, blobPath(id)); err == nil {
			size = file.Size()
		}
		if c.request.DryRun {
			return nil
		}
		return vacuum.RemoveBlob(id.String())
	})
	if err != nil && !missing(err) {
		return err
	}
	if !promised {
		c.garbage.Blobs, c.garbage.Bytes = append(c.garbage.Blobs, id.String()), c.garbage.Bytes+size
	}
	return nil
}

// removable reports whether an unused blob can be removed. If the request specifies images, the
// blob must belong to a removed image. Otherwise, the blob must be older than uploadAge.
func (c *collection) removable(ctx context.Context, of link, file string) bool {
	if c.candidates != nil {
		return c.candidates[of.name.String()] || c.candidates[of.id.String()]
	}
	return !c.young(ctx, file)
}

// young reports whether a file might be needed by a push that is in progress, because the file is
// new or its age is unknown.
func (c *collection) young(ctx context.Context, file string) bool {
	info, err := c.driver.Stat(ctx, file)
	return err != nil || c.now.Sub(info.ModTime()) < uploadAge
}
