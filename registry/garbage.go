package registry

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// uploadAge is how old a manifest or blob must be that no image refers to before it is taken for garbage: younger ones belong to pushes under way.
const uploadAge = time.Hour

// The layout of distribution's directory.
const (
	repositoriesDir = "/docker/registry/v2/repositories"
	blobsDir        = "/docker/registry/v2/blobs"
)

// collection is one search for garbage. While it goes on nobody stores manifests.
type collection struct {
	*store
	request record.GarbageRequest
	// images are the blobs of the images of the API server, by name. streams are the images of each repository's stream.
	images  map[string][]string
	streams map[string][]string
	now     time.Time

	going      map[string]bool // images that a dry run takes for removed
	candidates map[string]bool // blobs that may go; everything if nil
	used       map[string]bool // blobs that stay
	found      record.Garbage
	links      []repositoryLinks
}

// repositoryLinks are the layers that a repository has, and those that its manifests and images use.
type repositoryLinks struct {
	name   string
	layers []digest.Digest
	used   map[string]bool
}

// run finds the garbage and removes it.
func (c *collection) run(ctx context.Context) (record.Garbage, error) {
	c.used, c.going = map[string]bool{}, map[string]bool{}
	removed := map[string]map[string]bool{} // repository, manifest
	if !c.request.Everything {
		c.candidates = map[string]bool{}
	}
	for _, image := range c.request.Images {
		if _, exists := c.images[image.Digest]; exists && !c.request.DryRun {
			continue // it came back
		}
		c.going[image.Digest] = c.request.DryRun
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
		if err := c.visit(ctx, name, removed[name]); err != nil {
			return fmt.Errorf("read repository %q: %w", name, err)
		}
		return nil
	})
	if err != nil && !missing(err) {
		return c.found, err
	}
	if err := c.sweep(ctx); err != nil {
		return c.found, err
	}
	return c.found, nil
}

// keepImages marks what the images of the API server refer to.
func (c *collection) keepImages() {
	for name, blobs := range c.images {
		if c.going[name] {
			continue
		}
		c.used[name] = true
		for _, blob := range blobs {
			c.used[blob] = true
		}
	}
}

// visit marks what the manifests of a repository use that stay, and removes the others.
func (c *collection) visit(ctx context.Context, name string, removed map[string]bool) error {
	repository, err := c.repository(ctx, name)
	if err != nil {
		return err
	}
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return err
	}
	links := repositoryLinks{name: name, used: map[string]bool{}}
	for _, image := range c.streams[name] {
		if c.going[image] {
			continue
		}
		for _, blob := range append(c.images[image], image) {
			links.used[blob] = true
		}
	}
	var all []digest.Digest
	note := func(list *[]digest.Digest) func(digest.Digest) error {
		return func(id digest.Digest) error { *list = append(*list, id); return nil }
	}
	if err := manifests.(distribution.ManifestEnumerator).Enumerate(ctx, note(&all)); err != nil && !missing(err) {
		return err
	}
	kept := map[digest.Digest]bool{}
	for _, id := range all {
		if c.stays(ctx, name, id, removed) {
			if err := c.keep(ctx, manifests, id, kept, links.used); err != nil {
				return err
			}
		}
	}
	for _, id := range all {
		if kept[id] {
			continue
		}
		if err := c.removeManifest(ctx, repository, manifests, id); err != nil {
			return err
		}
	}
	if err := repository.Blobs(ctx).(distribution.ManifestEnumerator).Enumerate(ctx, note(&links.layers)); err != nil && !missing(err) {
		return err
	}
	c.links = append(c.links, links)
	return nil
}

// stays says whether a manifest is kept for its own sake; one of an index that stays is kept for that.
func (c *collection) stays(ctx context.Context, repository string, id digest.Digest, removed map[string]bool) bool {
	if removed[id.String()] {
		_, image := c.images[id.String()]
		return (image || slices.Contains(c.streams[repository], id.String())) && !c.going[id.String()]
	}
	if !c.request.Everything || c.used[id.String()] || slices.Contains(c.streams[repository], id.String()) {
		return true
	}
	return c.young(ctx, path.Join(repositoriesDir, repository, "_manifests/revisions", id.Algorithm().String(), id.Encoded(), "link"))
}

// keep marks a manifest and what it refers to.
func (c *collection) keep(ctx context.Context, manifests distribution.ManifestService, id digest.Digest, kept map[digest.Digest]bool, used map[string]bool) error {
	if kept[id] {
		return nil
	}
	kept[id], c.used[id.String()], used[id.String()] = true, true, true
	manifest, err := manifests.Get(ctx, id)
	if missing(err) { // its blob was lost: it uses nothing
		return nil
	}
	if err != nil {
		return fmt.Errorf("read manifest %q: %w", id, err)
	}
	for _, reference := range manifest.References() {
		c.used[reference.Digest.String()], used[reference.Digest.String()] = true, true
		if there, err := manifests.Exists(ctx, reference.Digest); err != nil || !there {
			continue // a blob, or what nobody pushed here
		}
		if err := c.keep(ctx, manifests, reference.Digest, kept, used); err != nil {
			return err
		}
	}
	return nil
}

// removeManifest removes a manifest with its tags from a repository. What it referred to may go too.
func (c *collection) removeManifest(ctx context.Context, repository distribution.Repository, manifests distribution.ManifestService, id digest.Digest) error {
	name := repository.Named().Name()
	if manifest, err := manifests.Get(ctx, id); err == nil && c.candidates != nil {
		for _, reference := range manifest.References() {
			c.candidates[reference.Digest.String()] = true
		}
	}
	c.found.Manifests = append(c.found.Manifests, record.GarbageLink{Repository: name, Digest: id.String()})
	if c.request.DryRun {
		return nil
	}
	tags, err := repository.Tags(ctx).Lookup(ctx, ocispec.Descriptor{Digest: id})
	if err != nil && !missing(err) {
		return fmt.Errorf("find tags of manifest %q: %w", id, err)
	}
	for _, tag := range tags {
		if err := repository.Tags(ctx).Untag(ctx, tag); err != nil {
			return fmt.Errorf("remove tag %q: %w", tag, err)
		}
	}
	return storage.NewVacuum(ctx, c.driver).RemoveManifest(name, id, nil)
}

// sweep removes layers from repositories and blobs from the disk: the layers first, so that no repository ever names a blob that is gone.
func (c *collection) sweep(ctx context.Context) error {
	vacuum := storage.NewVacuum(ctx, c.driver)
	for _, links := range c.links {
		for _, id := range links.layers {
			link := path.Join(repositoriesDir, links.name, "_layers", id.Algorithm().String(), id.Encoded(), "link")
			if links.used[id.String()] || !c.goes(ctx, id, link) {
				continue
			}
			c.found.Layers = append(c.found.Layers, record.GarbageLink{Repository: links.name, Digest: id.String()})
			if c.request.DryRun {
				continue
			}
			if err := vacuum.RemoveLayer(links.name, id); err != nil && !missing(err) {
				return fmt.Errorf("remove layer %q of repository %q: %w", id, links.name, err)
			}
		}
	}
	err := c.content.Blobs().Enumerate(ctx, func(id digest.Digest) error {
		data := path.Join(blobsDir, id.Algorithm().String(), id.Encoded()[:2], id.Encoded(), "data")
		if c.used[id.String()] || !c.goes(ctx, id, data) {
			return nil
		}
		if file, err := c.driver.Stat(ctx, data); err == nil {
			c.found.Bytes += file.Size()
		}
		c.found.Blobs = append(c.found.Blobs, id.String())
		return nil
	})
	if err != nil && !missing(err) {
		return fmt.Errorf("list blobs: %w", err)
	}
	if c.request.DryRun {
		return nil
	}
	for _, id := range c.found.Blobs {
		if err := vacuum.RemoveBlob(id); err != nil && !missing(err) {
			return fmt.Errorf("remove blob %q: %w", id, err)
		}
	}
	return nil
}

// goes says whether a blob that nothing uses may go: it is of an image that went, or old.
func (c *collection) goes(ctx context.Context, id digest.Digest, file string) bool {
	if c.candidates != nil {
		return c.candidates[id.String()]
	}
	return !c.young(ctx, file)
}

// young says whether a file is so new that a push under way may need it; also when that cannot be told.
func (c *collection) young(ctx context.Context, file string) bool {
	info, err := c.driver.Stat(ctx, file)
	return err != nil || c.now.Sub(info.ModTime()) < uploadAge
}

// missing says that something is not there: a directory of a registry that nobody has pushed to, or a blob.
func missing(err error) bool {
	return errors.As(err, new(driver.PathNotFoundError)) || errors.As(err, new(distribution.ErrRepositoryUnknown)) ||
		errors.As(err, new(distribution.ErrManifestUnknownRevision))
}
