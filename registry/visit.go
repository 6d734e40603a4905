package registry

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/distribution/distribution/v3"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// visit is the state of garbage collection in one repository.
type visit struct {
	name      string
	manifests distribution.ManifestService
	layers    []link
	revisions []link
	// names maps the digest under which a manifest is stored to the digests by which the repository
	// refers to it. ids is the reverse map.
	names map[digest.Digest][]digest.Digest
	ids   map[digest.Digest]digest.Digest
	// removed contains the manifests that the request specifies.
	removed map[string]bool
	keep    map[digest.Digest]bool
	inUse   map[string]bool // layers and manifests that kept manifests refer to
}

// visit marks the content that a repository's kept manifests use, and removes the other manifests.
func (c *collection) visit(ctx context.Context, name string, removed map[string]bool) error {
	repository, err := c.repository(ctx, name)
	if err != nil {
		return err
	}
	v, err := c.list(ctx, repository)
	if err != nil {
		return err
	}
	v.removed = removed
	for _, image := range c.streams[name] {
		if c.dryRemoved[image] {
			continue
		}
		for _, blob := range append(c.images[image], image) {
			v.inUse[blob] = true
		}
	}
	bySubject, err := c.referrers(ctx, name)
	if err != nil {
		return err
	}
	if err := c.keepManifests(ctx, v, bySubject); err != nil {
		return err
	}
	for id := range v.names {
		if !v.keep[id] {
			if err := c.removeManifest(ctx, repository, v, id); err != nil {
				return err
			}
		}
	}
	if err := c.forgetReferrers(ctx, v, bySubject); err != nil {
		return err
	}
	for _, layer := range v.layers {
		if v.inUse[layer.name.String()] || c.candidates == nil && !c.removable(ctx, layer, path.Join(linkDir(name, layersDir, layer.name), linkFile)) {
			// Mark the ID, because distribution resolves a layer's name to its ID.
			c.inUse[layer.id.String()], v.inUse[layer.id.String()] = true, true
		}
	}
	c.visits = append(c.visits, v)
	return nil
}

// list returns the layers and manifests in a repository.
func (c *collection) list(ctx context.Context,
	repository distribution.Repository) (v *visit, err error) {
	v = &visit{
		name: repository.Named().Name(), names: map[digest.Digest][]digest.Digest{}, ids: map[digest.Digest]digest.Digest{},
		keep: map[digest.Digest]bool{}, inUse: map[string]bool{},
	}
	if v.manifests, err = repository.Manifests(ctx); err != nil {
		return nil, err
	}
	if v.layers, err = c.links(ctx, v.name, layersDir); err != nil {
		return nil, err
	}
	if v.revisions, err = c.links(ctx, v.name, revisionsDir); err != nil {
		return nil, err
	}
	for _, revision := range v.revisions {
		v.names[revision.id], v.ids[revision.name] = append(v.names[revision.id], revision.name), revision.id
	}
	return v, nil
}

// keepManifests marks the manifests to keep: first those for which mustKeep returns true, then the
// manifests that they refer to. A referrer is kept or removed together with its subject. A referrer
// whose subject is not stored is treated like other manifests.
func (c *collection) keepManifests(ctx context.Context, v *visit,
	bySubject map[digest.Digest][]digest.Digest) error {
	follows := map[digest.Digest]bool{}
	for subject, all := range bySubject {
		for _, id := range all {
			_, ok := v.ids[subject]
			follows[id] = follows[id] || ok || slices.Contains(c.streams[v.name], subject.String())
		}
	}
	for id := range v.names {
		inUse := c.inUse[id.String()] || slices.Contains(c.streams[v.name], id.String())
		if follows[id] && !inUse || !c.mustKeep(ctx, v, id) {
			continue
		}
		if err := c.keep(ctx, v, id); err != nil {
			return err
		}
	}
	for more := true; more; {
		more = false
		for subject, all := range bySubject {
			if !v.keep[v.ids[subject]] && !v.inUse[subject.String()] {
				continue
			}
			for _, id := range all {
				if _, ok := v.names[id]; !ok || v.keep[id] || v.removed[id.String()] {
					continue
				}
				more = true
				if err := c.keep(ctx, v, id); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// forgetReferrers removes the records of referrers that were removed or never stored. It runs after
// the manifests are removed, because a referrer without its record would be treated like other
// manifests.
func (c *collection) forgetReferrers(ctx context.Context, v *visit,
	bySubject map[digest.Digest][]digest.Digest) error {
	for subject, all := range bySubject {
		for _, id := range all {
			note := referrerDir(v.name, subject, id)
			_, ok := v.names[id]
			if c.request.DryRun || v.keep[id] || !ok && c.young(ctx, path.Join(note, linkFile)) {
				continue
			}
			if err := c.driver.Delete(ctx, note); err != nil && !missing(err) {
				return fmt.Errorf("remove record that manifest %q refers to %q: %w", id, subject, err)
			}
		}
	}
	return nil
}

// mustKeep reports whether a manifest must be kept regardless of other manifests. The manifests in
// a kept index are kept with the index.
func (c *collection) mustKeep(ctx context.Context, v *visit, id digest.Digest) bool {
	inStream := slices.Contains(c.streams[v.name], id.String())
	if v.removed[id.String()] {
		_, image := c.images[id.String()]
		return (image || inStream) && !c.dryRemoved[id.String()]
	}
	if !c.request.Everything || c.inUse[id.String()] || inStream {
		return true
	}
	return slices.ContainsFunc(v.names[id], func(name digest.Digest) bool {
		return c.young(ctx, path.Join(linkDir(v.name, revisionsDir, name), linkFile))
	})
}

// keep marks a manifest and the content that it refers to.
func (c *collection) keep(ctx context.Context, v *visit, id digest.Digest) error {
	if v.keep[id] {
		return nil
	}
	v.keep[id], c.inUse[id.String()], v.inUse[id.String()] = true, true, true
	manifest, err := v.manifests.Get(ctx, id)
	if missing(err) { // the blob is lost, so its references are unknown
		return nil
	}
	if err != nil {
		return fmt.Errorf("read manifest %q: %w", id, err)
	}
	for _, reference := range manifest.References() {
		c.inUse[reference.Digest.String()], v.inUse[reference.Digest.String()] = true, true
		child, ok := v.ids[reference.Digest]
		if !ok {
			continue // the digest belongs to a blob, or to an image that was not pushed
		}
		if err := c.keep(ctx, v, child); err != nil {
			return err
		}
	}
	return nil
}

// removeManifest removes a manifest and its tags from a repository. The content that the manifest
// referred to becomes a candidate for removal.
func (c *collection) removeManifest(ctx context.Context, repository distribution.Repository,
	v *visit, id digest.Digest) error {
	if manifest, err := v.manifests.Get(ctx, id); err == nil && c.candidates != nil {
		c.candidates[id.String()] = true
		for _, reference := range manifest.References() {
			c.candidates[reference.Digest.String()] = true
		}
	}
	c.garbage.Manifests = append(c.garbage.Manifests, record.GarbageLink{Repository: v.name, Digest: id.String()})
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
	for _, name := range v.names[id] {
		if err := c.driver.Delete(ctx, linkDir(v.name, revisionsDir, name)); err != nil && !missing(err) {
			return fmt.Errorf("remove manifest %q: %w", name, err)
		}
	}
	return nil
}
