package registryclient

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Session reads a large amount of data from a few repositories. It authenticates once for each
// registry and repository, and it reads each digest once. A response has at most 4 MiB and 10,000
// JSON values (200,000 for a tag list). The client's account limits the total size of all
// responses. A session is safe for concurrent use. Errors have the type Error.
type Session struct {
	client    Client
	puller    *remote.Puller
	manifests once[Manifest]
	blobs     once[[]byte]
}

// Session begins a session that uses the client's credentials and transport.
func (c Client) Session() (*Session, error) {
	puller, err := remote.NewPuller(c.options(bounded{RoundTripper: c.Carrier(), account: c.Account})...)
	if err != nil {
		return nil, err
	}
	return &Session{client: c, puller: puller}, nil
}

// once caches the results of reads.
type once[V any] struct {
	mu    sync.Mutex
	reads map[string]func() (V, error)
}

// get returns the value for key. It reads the value, or waits for a concurrent read.
func (o *once[V]) get(key string, read func() (V, error)) (V, error) {
	o.mu.Lock()
	if o.reads == nil {
		o.reads = map[string]func() (V, error){}
	}
	first, ok := o.reads[key]
	if !ok {
		first = sync.OnceValues(read)
		o.reads[key] = first
	}
	o.mu.Unlock()
	return first()
}

// Manifest reads the manifest for a reference such as "registry.example.com/app:v1".
func (s *Session) Manifest(ctx context.Context, reference string) (Manifest, error) {
	parsed, err := name.ParseReference(reference, s.client.Names()...)
	if err != nil {
		return Manifest{}, err
	}
	return s.manifests.get(parsed.Name(), func() (Manifest, error) {
		descriptor, err := s.puller.Get(ctx, parsed)
		if err != nil {
			return Manifest{}, fmt.Errorf("read manifest of %q: %w", reference, explain(err))
		}
		return Manifest{
			MediaType: string(descriptor.MediaType), Digest: descriptor.Digest.String(),
			Bytes: descriptor.Manifest,
		}, nil
	})
}

// Blob reads a small blob in a repository such as "registry.example.com/app". It verifies the
// digest.
func (s *Session) Blob(ctx context.Context, repository, digest string) ([]byte, error) {
	parsed, err := name.NewDigest(repository+"@"+digest, s.client.Names()...)
	if err != nil {
		return nil, err
	}
	return s.blobs.get(parsed.Name(), func() ([]byte, error) {
		read, err := s.blob(ctx, parsed)
		if err != nil {
			return nil, fmt.Errorf("read blob %q of %q: %w", digest, repository, explain(err))
		}
		return read, nil
	})
}

func (s *Session) blob(ctx context.Context, at name.Digest) ([]byte, error) {
	layer, err := s.puller.Layer(ctx, at)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

func (s *Session) referrers(ctx context.Context, of name.Digest) (index []byte, err error) {
	listed, err := remote.Referrers(of, remote.WithContext(ctx), remote.Reuse(s.puller))
	if err != nil {
		return nil, err
	}
	return listed.RawManifest()
}

// maxTags is the maximum number of a repository's tags that are read.
const maxTags = 10_000

// Tags lists up to 10,000 of a repository's tags.
func (s *Session) Tags(ctx context.Context, repository string) (tags []string, err error) {
	parsed, err := name.NewRepository(repository, s.client.Names()...)
	if err != nil {
		return nil, err
	}
	pages, err := s.puller.Lister(ctx, parsed)
	for err == nil && pages.HasNext() && len(tags) < maxTags {
		var page *remote.Tags
		if page, err = pages.Next(ctx); err == nil {
			tags = append(tags, page.Tags...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list tags of %q: %w", repository, explain(err))
	}
	// Drop invalid tags, so that no other text from the registry is returned.
	tags = slices.DeleteFunc(tags, func(tag string) bool { return reference.TagRegexp.FindString(tag) != tag })
	return tags[:min(len(tags), maxTags)], nil
}
