package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	imagev1 "github.com/openshift/api/image/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// largest returns the size of the largest image in an index, in bytes. It returns 0 if an image
// cannot be read or is itself an index.
func (s *store) largest(ctx context.Context, repository string, index []byte) (maximum int64) {
	var parsed ocispec.Index
	if err := json.Unmarshal(index, &parsed); err != nil {
		return 0
	}
	for _, entry := range parsed.Manifests {
		size, err := s.size(ctx, repository, entry.Digest)
		if err != nil || size == 0 {
			return 0
		}
		maximum = max(maximum, size)
	}
	return maximum
}

// hasChildren reports whether a repository contains all images in an index.
func (s *store) hasChildren(ctx context.Context, repository string, index *imagev1.Image) bool {
	for _, child := range index.DockerImageManifests {
		if !s.hasManifest(ctx, repository, digest.Digest(child.Digest)) {
			return false
		}
	}
	return true
}

// size returns the total size, in bytes, of an image's layers and configuration according to its
// manifest. It returns 0 for an index.
func (s *store) size(ctx context.Context, name string, id digest.Digest) (int64, error) {
	mediaType, content, err := s.manifest(ctx, name, id)
	if err != nil {
		return 0, err
	}
	image, err := record.Of(record.Content{MediaType: mediaType, Manifest: content})
	if err != nil {
		return 0, fmt.Errorf("read manifest %q: %w", id, err)
	}
	metadata, err := record.Metadata(image)
	return metadata.Size, err
}
