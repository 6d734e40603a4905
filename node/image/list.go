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

// Summary describes an image of the store.
type Summary struct {
	// Name is its reference.
	Name string `json:"name"`
	// Digest is that of its manifest or index.
	Digest string `json:"digest"`
	// Size is the size of its compressed layers and configuration in bytes, or 0 where it is not for this platform.
	Size int64 `json:"size"`
	// Loaded is when this name was given to this content.
	Loaded time.Time `json:"loaded"`
	// Pinned: kubelet does not remove it.
	Pinned bool `json:"pinned"`
	// Archive is the file of the data directory's images that it comes from, if any.
	Archive string `json:"archive,omitempty"`
}

// List returns the images of the store by name. Names that the CRI plugin adds to each (by digest) are left out.
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
