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

// Session reads much of a few repositories, for one piece of work: it asks each registry once how to
// log in and for each repository once for a token, and reads once what has the same digest. No
// answer may have more than 4 MiB or 10,000 JSON values (a list of tags 200,000), nor all of them
// more than the client's account allows. Any number of goroutines may use it. Errors are of the
// type Error.
type Session struct {
	client    Client
	puller    *remote.Puller
	manifests once[Manifest]
	blobs     once[[]byte]
}

// Session begins one.
func (c Client) Session() (*Session, error) {
	puller, err := remote.NewPuller(c.options(bounded{RoundTripper: c.Carrier(), account: c.Account})...)
	if err != nil {
		return nil, err
	}
	return &Session{client: c, puller: puller}, nil
}

// once remembers what was read.
type once[V any] struct {
	mu    sync.Mutex
	reads map[string]func() (V, error)
}

// get reads what key stands for, or waits for who does so already.
func (o *once[V]) get(key string, read func() (V, error)) (V, error) {
	o.mu.Lock()
	if o.reads == nil {
		o.reads = map[string]func() (V, error){}
	}
	first, known := o.reads[key]
	if !known {
		first = sync.OnceValues(read)
		o.reads[key] = first
	}
	o.mu.Unlock()
	return first()
}

// Manifest reads the manifest of a reference such as "registry.example.com/app:v1".
func (s *Session) Manifest(ctx context.Context, reference string) (Manifest, error) {
	parsed, err := name.ParseReference(reference, s.client.Names()...)
	if err != nil {
		return Manifest{}, err
	}
	return s.manifests.get(parsed.Name(), func() (Manifest, error) {
		found, err := s.puller.Get(ctx, parsed)
		if err != nil {
			return Manifest{}, fmt.Errorf("read manifest of %q: %w", reference, explain(err))
		}
		return Manifest{MediaType: string(found.MediaType), Digest: found.Digest.String(), Bytes: found.Manifest}, nil
	})
}

// Blob reads a small blob of a repository such as "registry.example.com/app". A wrong one is an error.
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

// maxTags is how many tags of a repository are read at most.
const maxTags = 10_000

// Tags lists the tags of a repository; of one that has more than 10,000 the first ones.
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
	tags = slices.DeleteFunc(tags, func(tag string) bool { return reference.TagRegexp.FindString(tag) != tag }) // no other text of the registry
	return tags[:min(len(tags), maxTags)], nil
}
