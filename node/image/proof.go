package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/labels"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// labelSource is the prefix of layer labels that record, for each registry, the repositories from
// which pulls have received the layer. Names are hashed, because the length of labels is limited.
// containerd's own label, containerd.io/distribution.source, ignores the registry's port, and
// containerd sets it without proof.
const labelSource = "slipway.io/source."

// maxSources is the maximum number of repositories in a label. maxRegistries is the maximum number
// of such labels on a layer.
const maxSources, maxRegistries = 64, 32

// verified reports whether an earlier pull received a layer from this repository. The caller can
// read the repository, because its manifest has been downloaded. A layer from another repository
// must be downloaded and compared. A HEAD request proves nothing: a registry that forwards requests
// to another server returns that server's response.
func (d *download) verified(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	info, err := d.store.Info(ctx, desc.Digest)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key, repository := sourceLabel(d.repository)
	return info.Size == desc.Size && slices.Contains(strings.Split(info.Labels[key], ","), repository), nil
}

// prove records in a layer's labels that a pull has received the layer from the repository.
func (d *download) prove(ctx context.Context, desc ocispec.Descriptor) error {
	info, err := d.store.Info(ctx, desc.Digest)
	if err != nil {
		return fmt.Errorf("read layer record: %w", err)
	}
	key, repository := sourceLabel(d.repository)
	update := content.Info{Digest: desc.Digest, Labels: map[string]string{}}
	var peers []string
	for label := range info.Labels {
		if strings.HasPrefix(label, labelSource) && label != key {
			peers = append(peers, label)
		}
	}
	if len(peers) >= maxRegistries {
		// Remove another registry's label. The next pull from that registry then downloads the
		// layer again.
		update.Labels[peers[0]] = ""
	}
	sources := []string{repository}
	if previous := info.Labels[key]; previous != "" {
		sources = append(sources, strings.Split(previous, ",")...)
	}
	sources = sources[:min(len(sources), maxSources)]
	update.Labels[key] = strings.Join(sources, ",")
	var fields []string
	for label := range update.Labels {
		fields = append(fields, "labels."+label)
	}
	if _, err := d.store.Update(ctx, update, fields...); err != nil {
		return fmt.Errorf("record layer source: %w", err)
	}
	return nil
}

// diffID returns the digest of a layer's uncompressed content. If containerd has unpacked the
// layer, it has recorded this digest.
func (p *puller) diffID(ctx context.Context, namespace string, store content.Store, layer ocispec.Descriptor) (diffID digest.Digest, err error) {
	info, err := store.Info(ctx, layer.Digest)
	if err != nil {
		return "", err
	}
	if info.Labels[labels.LabelUncompressed] != "" {
		return images.GetDiffID(ctx, store, layer)
	}
	err = p.unpacking.run(ctx, namespace, store, layer, func(ctx context.Context) (err error) {
		diffID, err = images.GetDiffID(ctx, store, layer)
		return err
	})
	return diffID, err
}

// sourceLabel returns the name of the label for a repository's registry, and the value for the
// repository.
func sourceLabel(repository reference.Named) (key, value string) {
	hash := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		const length = 16
		return hex.EncodeToString(sum[:length])
	}
	return labelSource + hash(reference.Domain(repository)), hash(reference.Path(repository))
}

// checkLayers checks that the registry has served the configuration and the layers to the caller.
// It also checks that the layers have the content that the image's configuration specifies. The
// second check is necessary because containerd does not unpack a layer if it already has a snapshot
// for the diff IDs in the configuration. Any other image can contain the same diff IDs.
func (p *puller) checkLayers(ctx context.Context, namespace string, target ocispec.Descriptor, d *download) error {
	store := p.client.ContentStore()
	manifest, err := images.Manifest(ctx, store, target, platforms.Default())
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	for _, blob := range slices.Concat(manifest.Layers, []ocispec.Descriptor{manifest.Config}) {
		if !d.has(blob) {
			return refuse("the registry does not serve all parts of the image")
		}
	}
	diffIDs, err := images.RootFS(ctx, store, manifest.Config)
	if err != nil {
		return fmt.Errorf("read image configuration: %w", err)
	}
	if len(diffIDs) != len(manifest.Layers) {
		return refuse("the image has %d layers, its configuration names %d", len(manifest.Layers), len(diffIDs))
	}
	for i, layer := range manifest.Layers {
		diffID, err := p.diffID(ctx, namespace, store, layer)
		if err != nil {
			return fmt.Errorf("unpack layer %s: %w", layer.Digest, err)
		}
		if diffID != diffIDs[i] {
			return refuse("the content of a layer differs from the configuration of the image")
		}
	}
	return nil
}
