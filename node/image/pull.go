package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/unpack"
	"github.com/containerd/containerd/v2/defaults"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/semaphore"
)

// pulledLabels returns the labels for containerd's records of a pulled image. They mark the image
// as pulled, and as managed by containerd's CRI plugin.
func pulledLabels() map[string]string {
	return map[string]string{"io.cri-containerd.image": "managed", labelPulled: "true"}
}

// puller pulls images into containerd in the same way as containerd's CRI plugin.
type puller struct {
	client      *client.Client
	snapshotter string
	hosts       hosts
	policyFile  string
	storeDir    string
	// decoding limits the number of manifests that are decoded concurrently.
	decoding  *semaphore.Weighted
	unpacking unpacking
	// process identifies this process in labelPull.
	process string
}

// labelPull is the label of leases that pulls hold. Its value identifies the process that pulls.
const labelPull = "slipway.io/pull"

// maxDownloads is the maximum number of an image's layers that are fetched concurrently, as in the
// CRI plugin. maxDecoding is the maximum number of manifests, across all images, that are decoded
// concurrently.
const maxDownloads, maxDecoding = 3, 2

// leaseDuration is the time after which containerd deletes a pull's data if the process was killed
// during the pull and is not restarted.
const leaseDuration = 24 * time.Hour

// removeInterrupted deletes the data of pulls that earlier processes did not complete.
func (p *puller) removeInterrupted(ctx context.Context) error {
	manager := p.client.LeasesService()
	list, err := manager.List(ctx)
	if err != nil {
		return fmt.Errorf("list content leases: %w", err)
	}
	for _, lease := range list {
		if process := lease.Labels[labelPull]; process == "" || process == p.process {
			continue
		}
		if err := manager.Delete(ctx, lease, leases.SynchronousDelete); err != nil && !errdefs.IsNotFound(err) {
			return fmt.Errorf("delete content lease: %w", err)
		}
	}
	return nil
}

// pull pulls an image for a pod in namespace, unpacks the image, and names it as the CRI plugin
// does. It returns the image's ID, which is the digest of its configuration. If the pull fails,
// containerd deletes its data.
func (p *puller) pull(ctx context.Context, namespace string, ref reference.Named, credentials credentialsFunc) (id string, err error) {
	manager := p.client.LeasesService()
	lease, err := manager.Create(ctx, leases.WithRandomID(), leases.WithExpiration(leaseDuration),
		leases.WithLabel(labelPull, p.process))
	if err != nil {
		return "", fmt.Errorf("create content lease: %w", err)
	}
	var target ocispec.Descriptor
	defer func() {
		var options []leases.DeleteOpt
		if err != nil && target.Digest != "" { // otherwise, the pull has written nothing
			options = append(options, leases.SynchronousDelete)
		}
		err = errors.Join(err, manager.Delete(context.WithoutCancel(ctx), lease, options...))
	}()
	ctx = leases.WithLease(ctx, lease.ID)
	target, download, err := p.transfer(ctx, namespace, ref, credentials)
	if err != nil {
		return "", err
	}
	if err := p.checkLayers(ctx, namespace, target, download); err != nil {
		return "", err
	}
	image := client.NewImage(p.client, images.Image{Name: ref.String(), Target: target})
	config, err := image.Config(ctx)
	if err != nil {
		return "", fmt.Errorf("read image configuration: %w", err)
	}
	id = config.Digest.String()
	for _, name := range recordNames(ref, id, target.Digest.String()) {
		if err := replace(ctx, p.client.ImageService(), images.Image{Name: name, Target: target, Labels: pulledLabels()}); err != nil {
			return "", fmt.Errorf("tag image %q: %w", name, err)
		}
	}
	return id, nil
}

// transfer downloads and unpacks an image, and returns the descriptor of the image's manifest or
// index. If the registry has the image, target is set even if an error is returned.
func (p *puller) transfer(ctx context.Context, namespace string, ref reference.Named, credentials credentialsFunc) (target ocispec.Descriptor, d *download, err error) {
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: p.hosts.of(ctx, credentials)})
	name, target, err := resolver.Resolve(ctx, ref.String())
	if err != nil {
		return target, nil, err
	}
	if !images.IsManifestType(target.MediaType) && !images.IsIndexType(target.MediaType) {
		return target, nil, refuse("the image's manifest has an unsupported format")
	}
	if err := p.checkPolicy(ctx, ref, target.Digest.String(), credentials); err != nil {
		return target, nil, err
	}
	fetcher, err := resolver.Fetcher(ctx, name)
	if err != nil {
		return target, nil, err
	}
	d = &download{
		store: p.client.ContentStore(), fetcher: fetcher,
		repository: reference.TrimNamed(ref), decoding: p.decoding,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unpacker, err := p.unpacker(ctx, namespace)
	if err != nil {
		return target, nil, err
	}
	err = images.Dispatch(ctx, unpacker.Unpack(d.handler()), nil, target)
	if err != nil {
		cancel()
	}
	result, unpackErr := unpacker.Wait()
	if err == nil {
		err = unpackErr
	}
	if err == nil && result.Unpacks == 0 && d.layers.Load() > 0 {
		err = refuse("the image's configuration lists no layers")
	}
	return target, d, err
}

// unpacker returns an unpacker for an image. It unpacks layers while other layers are being
// downloaded. It also downloads layers that are already unpacked, so that the registry must prove
// that the caller may read them.
func (p *puller) unpacker(ctx context.Context, namespace string) (*unpack.Unpacker, error) {
	name := p.snapshotter
	if name == "" { // use the client's default
		label, err := p.client.GetLabel(ctx, defaults.DefaultSnapshotterNSLabel)
		if err != nil {
			return nil, fmt.Errorf("read default snapshotter: %w", err)
		}
		name = cmp.Or(label, defaults.DefaultSnapshotter)
	}
	capabilities, err := p.client.GetSnapshotterCapabilities(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read snapshotter capabilities: %w", err)
	}
	applier := limitedApplier{p.client.DiffService(), p.unpacking, p.client.ContentStore(), namespace}
	return unpack.NewUnpacker(ctx, p.client.ContentStore(), unpack.WithFetchAllContent(),
		unpack.WithLimiter(semaphore.NewWeighted(maxDownloads)),
		unpack.WithUnpackPlatform(unpack.Platform{
			SnapshotterKey: name, Snapshotter: p.client.SnapshotService(name),
			SnapshotterCapabilities: capabilities, Applier: applier,
		}))
}

// recordNames returns the names under which the CRI plugin stores a pulled image: its ID, the
// repository with the digest, and any tag.
func recordNames(ref reference.Named, id, digest string) []string {
	list := []string{id, ref.Name() + "@" + digest}
	if withTag, ok := ref.(reference.NamedTagged); ok {
		list = append(list, reference.TagNameOnly(withTag).String())
	}
	return list
}
