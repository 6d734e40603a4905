package image

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// leasePeriod is how long containerd keeps the blobs of an interrupted Load.
const leasePeriod = time.Hour

// Load creates img in the store, pinned and unpacked, and replaces any image with the same name. If
// img already exists, Load returns false and does not create, read or write anything.
//
// Load runs at low priority. If it is interrupted, the previous image remains.
func (s Store) Load(ctx context.Context, img Image) (loaded bool, err error) {
	c, err := s.connect()
	if err != nil {
		return false, err
	}
	defer c.Close()
	if img, err = s.onBase(ctx, c, img); err != nil {
		return false, fmt.Errorf("load image %s: %w", img.Name, err)
	}
	if s.has(ctx, c, img) {
		return false, nil
	}
	if err := s.load(ctx, c, img); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, fmt.Errorf("load image %s: %w", img.Name, err)
	}
	return true, nil
}

// onBase adds the layers of img's base image to img, if it has one. The layers' archives can be
// missing, because the layers are already unpacked and img shares them.
func (s Store) onBase(ctx context.Context, c *client.Client, img Image) (Image, error) {
	if img.base == "" {
		return img, nil
	}
	base, err := c.GetImage(ctx, img.base)
	if err != nil {
		return img, fmt.Errorf("find base image %s: %w", img.base, err)
	}
	unpacked, err := base.IsUnpacked(ctx, s.Snapshotter)
	if err != nil || !unpacked {
		return img, errors.Join(fmt.Errorf("use base image %s: it is not unpacked", img.base), err)
	}
	manifest, err := images.Manifest(ctx, c.ContentStore(), base.Target(), platforms.Default())
	if err != nil {
		return img, fmt.Errorf("read base image %s: %w", img.base, err)
	}
	diffIDs, err := base.RootFS(ctx)
	if err != nil {
		return img, fmt.Errorf("read base image %s: %w", img.base, err)
	}
	img.layers, img.diffIDs = manifest.Layers, diffIDs
	img.Content += " on " + base.Target().Digest.String()
	return img, nil
}

func (s Store) load(ctx context.Context, c *client.Client, img Image) error {
	// The lease keeps blobs that no image references yet. containerd removes unnecessary blobs when
	// this process deletes the lease. If the process cannot delete the lease, the lease expires.
	lease, err := c.LeasesService().Create(ctx, leases.WithRandomID(), leases.WithExpiration(leasePeriod))
	if err != nil {
		return err
	}
	defer c.LeasesService().Delete(context.WithoutCancel(ctx), lease, leases.SynchronousDelete)
	ctx = leases.WithLease(ctx, lease.ID)

	added, err := writeLayers(ctx, c.ContentStore(), img)
	if err != nil {
		return err
	}
	diffIDs := slices.Clone(img.diffIDs)
	for _, layer := range added {
		diffIDs = append(diffIDs, layer.Digest) // the diff ID, because the layer is not compressed
	}
	config, err := writeJSON(ctx, c.ContentStore(), ocispec.MediaTypeImageConfig, ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Config:   img.config,
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: diffIDs},
	}, nil)
	if err != nil {
		return err
	}
	references := map[string]string{"containerd.io/gc.ref.content.config": config.Digest.String()}
	layers := slices.Concat(img.layers, added)
	for i, layer := range layers {
		if !img.unpackedOnly {
			references[fmt.Sprintf("containerd.io/gc.ref.content.l.%d", i)] = layer.Digest.String()
		}
	}
	manifest, err := writeJSON(ctx, c.ContentStore(), ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    config,
		Layers:    layers,
	}, references)
	if err != nil {
		return err
	}
	record := images.Image{
		Name:   img.Name,
		Target: manifest,
		Labels: map[string]string{labelPinned: pinned, labelContent: img.Content},
	}
	if err := client.NewImage(c, record).Unpack(ctx, s.Snapshotter); err != nil {
		return err
	}
	return replace(ctx, c.ImageService(), record)
}

// replace creates or updates the image that has the record's name.
func replace(ctx context.Context, store images.Store, record images.Image) error {
	_, err := store.Create(ctx, record)
	if errdefs.IsAlreadyExists(err) {
		_, err = store.Update(ctx, record, "target", "labels")
	}
	return err
}

// writeLayers writes the layers of img that are not in its base image.
func writeLayers(ctx context.Context, store content.Store, img Image) (layers []ocispec.Descriptor, err error) {
	add := func(name string, write func(io.Writer) error) error {
		return atLowPriority(func() error {
			layer, err := writeLayer(ctx, store, fmt.Sprintf("slipway-layer-%s-%d", img.Name, len(layers)), write)
			if err != nil {
				return fmt.Errorf("create layer of %s: %w", name, err)
			}
			layers = append(layers, layer)
			return nil
		})
	}
	for _, archive := range img.archives {
		if err := add(archive, func(w io.Writer) error { return copyArchive(w, archive) }); err != nil {
			return nil, err
		}
	}
	return layers, add("files", func(w io.Writer) error { return writeTar(w, img.entries) })
}

// copyArchive writes the content of a tar file, which can be compressed, to w.
func copyArchive(w io.Writer, path string) error {
	file, err := openSource(path, nil)
	if err != nil {
		return err
	}
	defer file.Close()
	stream, err := decompress(file)
	if err != nil {
		return errors.New("it is not a tar file, plain or compressed with gzip or zstd")
	}
	defer stream.Close()
	if _, err := io.Copy(w, stream); err != nil {
		return file.explain(err)
	}
	return nil
}

// writeLayer writes a layer under a unique reference and returns its descriptor. The layer is
// streamed into the store, without a copy in memory or in a file. It is not compressed, because it
// is unpacked immediately on the same host.
func writeLayer(ctx context.Context, store content.Store, ref string,
	write func(io.Writer) error) (ocispec.Descriptor, error) {
	writer, err := content.OpenWriter(ctx, store, content.WithRef(ref))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer writer.Close()
	// Discard data from an interrupted attempt.
	if err := writer.Truncate(0); err != nil {
		return ocispec.Descriptor{}, err
	}
	const messageSize = 1 << 20
	buffer := bufio.NewWriterSize(writer, messageSize)
	sum := sha256.New()
	var size counter
	if err := write(io.MultiWriter(buffer, sum, &size)); err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := buffer.Flush(); err != nil {
		return ocispec.Descriptor{}, err
	}
	layer := ocispec.Descriptor{
		MediaType: ocispec.MediaTypeImageLayer,
		Digest:    digest.NewDigest(digest.SHA256, sum),
		Size:      int64(size),
	}
	if err := writer.Commit(ctx, layer.Size, layer.Digest); err != nil && !errdefs.IsAlreadyExists(err) {
		return ocispec.Descriptor{}, err
	}
	return layer, nil
}

// writeJSON writes value as a JSON blob with labels and returns its descriptor.
func writeJSON(ctx context.Context, store content.Store, mediaType string, value any,
	labels map[string]string) (ocispec.Descriptor, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	blob := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	err = content.WriteBlob(ctx, store, "slipway-"+blob.Digest.String(), bytes.NewReader(data), blob, content.WithLabels(labels))
	return blob, err
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
