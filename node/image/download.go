package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/semaphore"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

const (
	// maxLayers is the maximum number of layers that the kernel can mount in one overlay.
	maxLayers = 500
	// maxManifests is the maximum number of manifests in an index. maxBlobs is the maximum number
	// of manifests, configurations and layers in a pull.
	maxManifests, maxBlobs = 1000, 1000
	// maxValues is the maximum number of values in a JSON document.
	maxValues = 10_000
)

// download transfers an image's blobs from a registry to containerd's store.
//
// The registry must prove that the caller may read each blob, even if the store already contains
// the blob. Otherwise, a manifest's author could refer to the blobs of any other image. Manifests
// and configurations are downloaded each time. Layers are downloaded once per repository.
type download struct {
	store      content.Store
	fetcher    remotes.Fetcher
	repository reference.Named
	// decoding limits the number of documents that are decoded concurrently on this node.
	decoding *semaphore.Weighted
	// blobs is the number of transferred blobs, and layers is the number of layers among them.
	blobs, layers atomic.Int32
	// leases contains the digests of the blobs that the registry has served to the caller.
	leases sync.Map
}

// has reports whether the registry has served a blob to the caller.
func (d *download) has(blob ocispec.Descriptor) bool {
	_, ok := d.leases.Load(blob.Digest)
	return ok
}

// handler returns a handler that transfers a descriptor's blob, and returns the blob's children
// that this host needs.
func (d *download) handler() images.Handler {
	platform := platforms.Default()
	children := images.SetChildrenLabels(d.store, images.HandlerFunc(d.children))
	children = images.LimitManifests(images.FilterPlatforms(children, platform), platform, 1)
	return images.Handlers(images.HandlerFunc(d.transfer), children)
}

// transfer ensures that the store contains a blob, and that the registry serves the blob to the
// caller.
func (d *download) transfer(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	if d.blobs.Add(1) > maxBlobs {
		return nil, refuse("the image has more than %d manifests, configurations and layers", maxBlobs)
	}
	if err := desc.Digest.Validate(); err != nil || desc.Size <= 0 {
		return nil, refuse("the image refers to a blob without a valid digest and size")
	}
	desc = bare(desc)
	// containerd shares transfers that have the same name. A transfer from one repository must not
	// delay or break transfers from another repository, even in the same registry. This is
	// necessary because the registry can forward requests for a repository to another server.
	desc.Annotations = map[string]string{ocispec.AnnotationRefName: d.repository.Name()}
	if images.IsLayerType(desc.MediaType) {
		d.layers.Add(1)
		if err := d.layer(ctx, desc); err != nil {
			return nil, err
		}
		d.leases.Store(desc.Digest, true)
		return nil, nil
	}
	if desc.Size > maxDocument {
		return nil, refuse("the image has a manifest, index or configuration of more than %d MiB", maxDocument>>20)
	}
	err := d.fetch(ctx, desc)
	if exceeded := (*jsonlimit.Error)(nil); errors.As(err, &exceeded) {
		return nil, refuse("the image has a manifest, index or configuration with more than %d JSON values", maxValues)
	}
	if err == nil {
		d.leases.Store(desc.Digest, true)
	}
	return nil, err
}

// layer transfers a layer, unless the store contains the layer and it has been verified.
func (d *download) layer(ctx context.Context, desc ocispec.Descriptor) error {
	verified, err := d.verified(ctx, desc)
	if err != nil || verified {
		return err
	}
	if err := d.fetch(ctx, desc); err != nil {
		return err
	}
	return d.prove(ctx, desc)
}

// fetch downloads a blob and checks its digest. If the store does not contain the blob, fetch
// stores it.
func (d *download) fetch(ctx context.Context, desc ocispec.Descriptor) error {
	fetcher := &countedFetcher{next: d.fetcher, json: !images.IsLayerType(desc.MediaType)}
	err := remotes.Fetch(ctx, d.store, fetcher, desc)
	if errdefs.IsFailedPrecondition(err) {
		// The content does not match its digest, perhaps because its beginning is from an
		// interrupted pull.
		if err := d.store.Abort(ctx, remotes.MakeRefKey(ctx, desc)); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("remove incomplete blob: %w", err)
		}
		fetcher.fetches = 0
		err = remotes.Fetch(ctx, d.store, fetcher, desc)
	}
	if errdefs.IsAlreadyExists(err) || err == nil && fetcher.fetches == 0 {
		// The store already contained the complete blob, from another pull or from an interrupted
		// pull.
		return compare(ctx, fetcher, desc)
	}
	if errdefs.IsFailedPrecondition(err) {
		return refuse("the content of a blob differs from its digest")
	}
	return err
}

// compare downloads a blob without storing it, and checks its digest.
func compare(ctx context.Context, fetcher remotes.Fetcher, desc ocispec.Descriptor) error {
	body, err := fetcher.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	defer body.Close()
	verifier := desc.Digest.Verifier()
	size, err := io.Copy(verifier, body)
	if err != nil {
		return err
	}
	if size != desc.Size || !verifier.Verified() {
		return refuse("the content of a blob differs from its digest")
	}
	return nil
}

// children returns the descriptors in a manifest or an index, or nil for other blobs.
func (d *download) children(ctx context.Context, desc ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	manifest, index := images.IsManifestType(desc.MediaType), images.IsIndexType(desc.MediaType)
	if !manifest && !index {
		return nil, nil
	}
	if err := d.decoding.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer d.decoding.Release(1)
	children, err := images.Children(ctx, d.store, desc)
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	if index && len(children) > maxManifests {
		return nil, refuse("the image has an index of more than %d manifests", maxManifests)
	}
	if manifest {
		if err := checkManifest(children[0], children[1:]); err != nil {
			return nil, err
		}
	}
	for i := range children {
		children[i] = bare(children[i])
	}
	return children, nil
}

// checkManifest checks the number, media types and platforms of the blobs to which a manifest
// refers.
func checkManifest(config ocispec.Descriptor, layers []ocispec.Descriptor) error {
	if !images.IsConfigType(config.MediaType) {
		return refuse("the manifest is not an image manifest: its config descriptor has another media type")
	}
	if len(layers) > maxLayers {
		return refuse("the image has more than %d layers", maxLayers)
	}
	for _, blob := range slices.Concat(layers, []ocispec.Descriptor{config}) {
		// Reject blobs with a platform, because the platform filter would skip them.
		if blob.Platform != nil {
			return refuse("the manifest is not an image manifest: a layer or config descriptor specifies a platform")
		}
	}
	for _, layer := range layers {
		if !images.IsLayerType(layer.MediaType) {
			return refuse("the manifest is not an image manifest: a layer descriptor has another media type")
		}
	}
	return nil
}

// bare returns a descriptor without the fields that containerd must not use. Otherwise, containerd
// would connect to the URLs without this package's dialer, and copy the annotations to snapshot
// labels.
func bare(desc ocispec.Descriptor) ocispec.Descriptor {
	desc.URLs, desc.Data, desc.Annotations = nil, nil, nil
	return desc
}

// countedFetcher counts fetches. It limits a blob's size to the size in its descriptor.
type countedFetcher struct {
	next    remotes.Fetcher
	json    bool
	fetches int
}

// Fetch returns the content of a blob.
func (f *countedFetcher) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	f.fetches++
	body, err := f.next.Fetch(withBodyLimit(ctx, desc.Size), bare(desc))
	if err != nil || !f.json {
		return body, err
	}
	return struct {
		io.Reader
		io.Closer
	}{jsonlimit.Reader(body, maxValues), body}, nil
}
