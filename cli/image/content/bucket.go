package content

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/slipway-platform/slipway/internal/registryclient"
)

// s3Scheme is the prefix of destinations in S3: s3://HOST/REGION/BUCKET/REPOSITORY:TAG.
const s3Scheme = "s3://"

// bucket is an S3 bucket to which images are copied. Its objects use the paths of the registry API
// (v2/REPOSITORY/manifests/TAG). Therefore, clients that can read the bucket over HTTP can pull
// images from it without a registry.
//
// Source: `oc image mirror` of OpenShift Container Platform 3.11, "s3://".
type bucket struct {
	name     string
	client   func() (*minio.Client, error)
	sources  []string // values of --s3-source-bucket
	force    bool
	alone    bool
	slots    chan struct{}
	progress *progress
	sending  singleflight.Group // keyed by object path
	blobs    sync.Map           // maps a blob's digest to the path of its object
}

// buckets contains the destination buckets, keyed by host, region and name.
type buckets struct {
	access   *access
	sources  []string
	progress *progress
	buckets  map[string]*bucket
}

// of returns the bucket for a destination. The destination's repository has the form
// REGION/BUCKET/REPOSITORY. The bucket connects to S3 on the first upload.
func (b *buckets) of(to name.Reference) *bucket {
	region, rest, _ := strings.Cut(to.Context().RepositoryStr(), "/")
	bucketName, _, _ := strings.Cut(rest, "/")
	key := path.Join(to.Context().RegistryStr(), region, bucketName)
	in := b.buckets[key]
	if in == nil {
		in = &bucket{
			name: bucketName, sources: b.sources, force: b.access.force, alone: b.access.alone, slots: make(chan struct{}, b.access.jobs), progress: b.progress,
			client: sync.OnceValues(func() (*minio.Client, error) { return connect(to.Context().RegistryStr(), region, b.access.client()) }),
		}
		b.buckets[key] = in
	}
	return in
}

// connect creates a client for an S3 server, with the same credentials as the AWS tools.
func connect(host, region string, client registryclient.Client) (*minio.Client, error) {
	existing := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}})
	if value, err := existing.GetWithContext(nil); err != nil || value.AccessKeyID == "" {
		return nil, fmt.Errorf("no credentials for %q: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them to ~/.aws/credentials", host)
	}
	carrier, secure := client.Carrier(), true
	if client.Insecure { // fall back to HTTP if HTTPS fails
		response, err := (&http.Client{Transport: carrier}).Head("https://" + host + "/")
		if secure = err == nil; secure {
			response.Body.Close()
		}
	}
	return minio.New(host, &minio.Options{Creds: existing, Secure: secure, Region: region, Transport: carrier})
}

// push copies an image, or a manifest list with its images. It writes a manifest only after the
// content that the manifest refers to, so that every manifest in the bucket is complete.
func (b *bucket) push(ctx context.Context, to name.Reference, artifact remote.Taggable) error {
	repository := strings.SplitN(to.Context().RepositoryStr(), "/", 3)[2]
	tag := ""
	if ref, ok := to.(name.Tag); ok {
		tag = ref.TagStr()
	}
	// Clients request this path to check whether the server is a registry.
	if err := b.putObject(ctx, "v2/", "application/json", nil); err != nil {
		return err
	}
	return b.pushManifest(ctx, repository, tag, artifact)
}

func (b *bucket) pushManifest(ctx context.Context, repository, tag string, artifact remote.Taggable) error {
	parts, err := b.parts(ctx, repository, artifact)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, push := range parts {
		group.Go(push)
	}
	if err := group.Wait(); err != nil {
		return err
	}
	manifest, err := artifact.RawManifest()
	if err != nil {
		return err
	}
	desc, err := partial.Descriptor(artifact.(partial.Describable))
	if err != nil {
		return err
	}
	for _, reference := range []string{desc.Digest.String(), tag} {
		if reference == "" {
			continue
		}
		if err := b.putObject(ctx, path.Join("v2", repository, "manifests", reference), string(desc.MediaType), manifest); err != nil {
			return err
		}
	}
	return nil
}

// parts returns functions that each copy one blob of an image, or one manifest of a manifest list.
func (b *bucket) parts(ctx context.Context, repository string, artifact remote.Taggable) (parts []func() error, err error) {
	switch index := artifact.(type) {
	case v1.ImageIndex:
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, entry := range manifest.Manifests {
			child, err := childOf(index, entry)
			if err != nil {
				return nil, err
			}
			parts = append(parts, func() error { return b.pushManifest(ctx, repository, "", child) })
		}
	case v1.Image:
		layers, err := index.Layers()
		if err != nil {
			return nil, err
		}
		config, err := partial.ConfigLayer(index)
		if err != nil {
			return nil, err
		}
		for _, layer := range append(layers, config) {
			parts = append(parts, func() error { return b.pushBlob(ctx, repository, layer) })
		}
	}
	return parts, nil
}

// childOf returns the image or manifest list that a manifest list entry refers to.
func childOf(index v1.ImageIndex, entry v1.Descriptor) (remote.Taggable, error) {
	switch {
	case entry.MediaType.IsIndex():
		return index.ImageIndex(entry.Digest)
	case entry.MediaType.IsImage():
		return index.Image(entry.Digest)
	}
	return nil, fmt.Errorf("the manifest list contains %s of type %q: only images and manifest lists can be copied to S3", entry.Digest, entry.MediaType)
}

// putObject writes a small object. It does not sign the content. Otherwise, without TLS, the client
// would sign empty content as a stream of unknown length. Few servers accept that signature.
func (b *bucket) putObject(ctx context.Context, key, mediaType string, content []byte) error {
	return b.use(func(client *minio.Client) error {
		options := minio.PutObjectOptions{ContentType: mediaType, DisableContentSha256: true}
		_, err := client.PutObject(ctx, b.name, key, bytes.NewReader(content), int64(len(content)), options)
		if err != nil {
			return fmt.Errorf("write object %q: %w", key, err)
		}
		return nil
	})
}

// use waits until fewer than the maximum number of transfers are running, and then calls do with
// the client.
func (b *bucket) use(do func(*minio.Client) error) error {
	client, err := b.client()
	if err != nil {
		return err
	}
	b.slots <- struct{}{}
	defer func() { <-b.slots }()
	return do(client)
}

// pushBlob copies a layer or a configuration, unless the bucket already contains it or S3 can copy
// it from another path. It skips layers that must not be distributed.
func (b *bucket) pushBlob(ctx context.Context, repository string, blob v1.Layer) error {
	mediaType, err := blob.MediaType()
	if err != nil || !mediaType.IsDistributable() {
		return err
	}
	digest, err := blob.Digest()
	if err != nil {
		return err
	}
	key := path.Join("v2", repository, "blobs", digest.String())
	_, err, _ = b.sending.Do(key, func() (any, error) {
		return nil, b.use(func(client *minio.Client) error {
			if b.has(ctx, client, key) || b.copyWithinS3(ctx, client, digest, key) {
				return nil
			}
			if err := b.send(ctx, client, blob, key); err != nil {
				return fmt.Errorf("write object %q: %w", key, err)
			}
			b.blobs.Store(digest, key)
			b.progress.arrived(repository, digest.String())
			return nil
		})
	})
	return err
}

func (b *bucket) has(ctx context.Context, client *minio.Client, key string) bool {
	if b.force {
		return false
	}
	_, err := client.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	return err == nil
}

// copyWithinS3 requests that S3 copy a blob from another repository or a source bucket, and reports
// whether S3 copied it.
func (b *bucket) copyWithinS3(ctx context.Context, client *minio.Client, digest v1.Hash, key string) bool {
	var places []string
	if entry, ok := b.blobs.Load(digest); ok && !b.alone && !b.force {
		places = append(places, b.name+"/"+entry.(string))
	}
	for _, source := range b.sources {
		if registry, ok := strings.CutSuffix(source, "[store]"); ok {
			places = append(places, path.Join(registry, "docker/registry/v2/blobs", digest.Algorithm, digest.Hex[:2], digest.Hex, "data"))
			continue
		}
		places = append(places, path.Join(source, digest.String()))
	}
	for _, place := range places {
		from, object, _ := strings.Cut(place, "/")
		to := minio.CopyDestOptions{Bucket: b.name, Object: key}
		if _, err := client.CopyObject(ctx, to, minio.CopySrcOptions{Bucket: from, Object: object}); err == nil {
			return true
		}
	}
	return false
}

func (b *bucket) send(ctx context.Context, client *minio.Client, blob v1.Layer, key string) error {
	size, err := blob.Size()
	if err != nil {
		return err
	}
	content, err := blob.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = client.PutObject(ctx, b.name, key, &countedBody{content, b.progress}, size, minio.PutObjectOptions{ContentType: string(types.OCILayer)})
	return err
}
