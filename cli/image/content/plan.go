package content

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// copyTask copies one manifest and its blobs to a repository.
type copyTask struct {
	from     name.Reference
	to       name.Reference
	digest   v1.Hash
	artifact remote.Taggable
	blobs    []v1.Descriptor
	// bucket is set if the destination is in S3. In this case, the repository in to has the form
	// REGION/BUCKET/REPOSITORY.
	bucket *bucket
}

// plan is the list of images to copy, sorted by destination.
type plan []copyTask

// plan reads the manifests of the sources and returns the plan. It returns the errors for all
// sources together.
func (m *mirror) plan(registries *registries, all []mapping) (copies plan, err error) {
	var problems []error
	for _, mapping := range all {
		next, err := m.prepare(registries, mapping)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		copies = append(copies, *next)
	}
	byPlace := map[string]v1.Hash{}
	for _, c := range copies {
		if other, ok := byPlace[c.to.Name()]; ok && other != c.digest {
			problems = append(problems, fmt.Errorf("destination %q is specified for two images, %s and %s", c.to, other, c.digest))
		}
		byPlace[c.to.Name()] = c.digest
	}
	slices.SortStableFunc(copies, func(a, b copyTask) int { return cmp.Compare(a.to.Name(), b.to.Name()) })
	return copies, errors.Join(problems...)
}

// prepare reads one manifest. It keeps a manifest list unchanged, unless the filter selects only
// some of its images.
func (m *mirror) prepare(registries *registries, item mapping) (*copyTask, error) {
	desc, from, err := registries.get(item.source)
	if err != nil {
		return nil, err
	}
	next := &copyTask{from: from, digest: desc.Digest}
	if next.artifact, err = m.choose(desc); err != nil {
		return nil, fmt.Errorf("select images of %q: %w", item.source, err)
	}
	if image, ok := next.artifact.(interface{ Digest() (v1.Hash, error) }); ok {
		if next.digest, err = image.Digest(); err != nil {
			return nil, err
		}
	}
	if next.blobs, err = blobsOf(next.artifact); err != nil {
		return nil, explain("read image", item.source, err)
	}
	destination, inS3 := strings.CutPrefix(item.destination, s3Scheme)
	if !hasTag(destination) {
		destination += "@" + next.digest.String()
	}
	if next.to, err = name.ParseReference(destination, registries.names...); err != nil {
		return nil, err
	}
	if inS3 {
		next.bucket = m.buckets.of(next.to)
	}
	return next, nil
}

func (m *mirror) choose(desc *remote.Descriptor) (remote.Taggable, error) {
	if !desc.MediaType.IsIndex() {
		return m.filter.single(desc, false)
	}
	index, manifests, all, err := m.filter.among(desc)
	switch {
	case err != nil:
		return nil, err
	case len(manifests) == 0:
		return nil, errSeveral{"has no matching image", all}
	case len(manifests) == len(all):
		return index, nil
	case len(manifests) == 1:
		return index.Image(manifests[0].Digest)
	}
	return mutate.RemoveManifests(index, func(entry v1.Descriptor) bool {
		return !slices.ContainsFunc(manifests, func(c v1.Descriptor) bool { return match.Digests(c.Digest)(entry) })
	}), nil
}

// blobsOf returns the configurations and layers of an image, or of all images in an index.
func blobsOf(artifact remote.Taggable) (all []v1.Descriptor, err error) {
	if index, ok := artifact.(v1.ImageIndex); ok {
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, entry := range manifest.Manifests {
			if !entry.MediaType.IsImage() {
				continue
			}
			image, err := index.Image(entry.Digest)
			if err != nil {
				return nil, err
			}
			blobs, err := blobsOf(image)
			if err != nil {
				return nil, err
			}
			all = append(all, blobs...)
		}
		return all, nil
	}
	image, ok := artifact.(v1.Image)
	if !ok {
		return nil, nil
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType.IsDistributable() {
			all = append(all, layer)
		}
	}
	return append(all, manifest.Config), nil
}

// print prints the registries, their repositories, and the blobs and manifests to copy.
func (p plan) print(out io.Writer) {
	registry, repository := "", ""
	seen := map[string]bool{}
	var unique, shared int
	var size int64
	for _, c := range p {
		if host := c.to.Context().RegistryStr(); host != registry {
			registry, repository = host, ""
			fmt.Fprintf(out, "%s/\n", registry)
		}
		if path := c.to.Context().RepositoryStr(); path != repository {
			repository = path
			fmt.Fprintf(out, "  %s\n", repository)
		}
		for _, blob := range c.blobs {
			key := c.to.Context().Name() + "@" + blob.Digest.String()
			if seen[key] {
				shared++
				continue
			}
			seen[key] = true
			unique++
			size += blob.Size
			fmt.Fprintf(out, "    %s %s %s\n", c.from.Context().RepositoryStr(), blob.Digest, units.BytesSize(float64(blob.Size)))
		}
		fmt.Fprintf(out, "    %s -> %s\n", c.digest, strings.TrimPrefix(c.to.Identifier(), c.digest.String()))
	}
	fmt.Fprintf(out, "  stats: shared=%d unique=%d size=%s\n", shared, unique, units.BytesSize(float64(size)))
}
