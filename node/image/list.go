package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/platforms"
)

// Summary describes an image in the store.
type Summary struct {
	// Name is the image's reference.
	Name string `json:"name"`
	// Digest is the digest of the image's manifest or index.
	Digest string `json:"digest"`
	// Size is the size of the compressed layers and the configuration in bytes, or 0 if the image
	// is not for this platform.
	Size int64 `json:"size"`
	// Loaded is the time when this name was assigned to this content.
	Loaded time.Time `json:"loaded"`
	// Pinned means that the kubelet keeps the image.
	Pinned bool `json:"pinned"`
	// Archive is the file from which the image was loaded, if any. The file is in the data
	// directory's images directory.
	Archive string `json:"archive,omitempty"`
}

// List returns the images in the store by name. It omits the digest references that the CRI plugin
// adds to each image.
func (s Store) List(ctx context.Context) ([]Summary, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	records, err := c.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var list []Summary
	for _, record := range records {
		if strings.HasPrefix(record.Name, "sha256:") || strings.Contains(record.Name, "@sha256:") {
			continue
		}
		summary := Summary{
			Name:   record.Name,
			Digest: record.Target.Digest.String(),
			Loaded: record.UpdatedAt,
			Pinned: record.Labels[labelPinned] == pinned,
		}
		summary.Archive, _, _ = strings.Cut(record.Labels[labelArchive], "?")
		if manifest, err := images.Manifest(ctx, c.ContentStore(), record.Target, platforms.Default()); err == nil {
			summary.Size = manifest.Config.Size
			for _, layer := range manifest.Layers {
				summary.Size += layer.Size
			}
		}
		list = append(list, summary)
	}
	slices.SortFunc(list, func(a, b Summary) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}
