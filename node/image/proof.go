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

// labelSource is the prefix of labels of layers. The label of a registry contains the repositories
// that gave the layer to a pull. Names are hashes, because the length of labels is limited.
// containerd's own label, containerd.io/distribution.source, ignores the port of the registry, and
// containerd sets it without a proof.
const labelSource = "slipway.io/source."

// maxSources is the number of repositories of a registry in a label, and maxRegistries the number
// of labels of a layer.
const maxSources, maxRegistries = 64, 32

// proven reports whether the store has a layer that this registry gives to the caller. The caller
// can read the repository, because its manifest was downloaded. If another repository of the
// registry gave the layer, the registry decides.
func (d *download) proven(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	info, err := d.store.Info(ctx, desc.Digest)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size != desc.Size {
		return false, refuse("the manifest announces another size of a layer")
	}
	key, repository := sourceLabel(d.repository)
	sources := info.Labels[key]
	if slices.Contains(strings.Split(sources, ","), repository) {
		return true, nil
	}
	if sources == "" {
		return false, nil
	}
	layer, err := reference.WithDigest(d.repository, desc.Digest)
	if err != nil {
		return false, err
	}
	if _, _, err := d.resolver.Resolve(ctx, layer.String()); err != nil {
		return false, ctx.Err() // the download shows the registry's decision
	}
	return true, d.prove(ctx, desc)
}

// prove records that the repository gave a layer to a pull.
func (d *download) prove(ctx context.Context, desc ocispec.Descriptor) error {
	info, err := d.store.Info(ctx, desc.Digest)
	if err != nil {
		return fmt.Errorf("read record of layer: %w", err)
	}
	key, repository := sourceLabel(d.repository)
	registries := 0
	for label := range info.Labels {
		if strings.HasPrefix(label, labelSource) {
			registries++
		}
	}
	if registries >= maxRegistries && info.Labels[key] == "" {
		return nil // the next pull from this registry downloads the layer again
	}
	sources := []string{repository}
	if previous := info.Labels[key]; previous != "" {
		sources = append(sources, strings.Split(previous, ",")...)
	}
	sources = sources[:min(len(sources), maxSources)]
	update := content.Info{Digest: desc.Digest, Labels: map[string]string{key: strings.Join(sources, ",")}}
	if _, err := d.store.Update(ctx, update, "labels."+key); err != nil {
		return fmt.Errorf("record source of layer: %w", err)
	}
	return nil
}

// diffID returns the digest of the unpacked content of a layer. containerd has recorded it if it
// unpacked the layer.
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

// sourceLabel returns the name of the label of a repository's registry, and the repository's value.
func sourceLabel(repository reference.Named) (key, value string) {
	hash := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		const length = 16
		return hex.EncodeToString(sum[:length])
	}
	return labelSource + hash(reference.Domain(repository)), hash(reference.Path(repository))
}

// checkLayers checks that the layers have the content that the configuration of the image names.
// containerd does not unpack a layer if it has a snapshot for the names in the configuration, which
// can be those of any other image.
func (p *puller) checkLayers(ctx context.Context, namespace string, target ocispec.Descriptor) error {
	store := p.client.ContentStore()
	manifest, err := images.Manifest(ctx, store, target, platforms.Default())
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	diffIDs, err := images.RootFS(ctx, store, manifest.Config)
	if err != nil {
		return fmt.Errorf("read configuration of image: %w", err)
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
