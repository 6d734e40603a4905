// Package registryclient reads manifests and blobs of container registries with the credentials of pull secrets.
package registryclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Client reads registries.
type Client struct {
	// Keychain finds credentials; nil means none.
	Keychain authn.Keychain
	// Insecure accepts every certificate, and HTTP where HTTPS does not answer.
	Insecure bool
	// Transport carries requests; nil means the process's.
	Transport *http.Transport
}

// Manifest is a manifest as a registry answers it.
type Manifest struct {
	MediaType, Digest string
	Bytes             []byte
}

// Manifest reads the manifest of a reference such as "registry.example.com/app:v1".
func (c Client) Manifest(ctx context.Context, reference string) (Manifest, error) {
	parsed, err := name.ParseReference(reference, c.names()...)
	if err != nil {
		return Manifest{}, err
	}
	found, err := remote.Get(parsed, c.options(ctx)...)
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest of %q: %w", reference, err)
	}
	return Manifest{MediaType: string(found.MediaType), Digest: found.Digest.String(), Bytes: found.Manifest}, nil
}

// Blob opens a blob of a repository such as "registry.example.com/app", and tells its size. What is read is checked against the digest: at the end
// a wrong blob is an error. The caller closes it.
func (c Client) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, int64, error) {
	parsed, err := name.NewDigest(repository+"@"+digest, c.names()...)
	if err != nil {
		return nil, 0, err
	}
	layer, err := remote.Layer(parsed, c.options(ctx)...)
	if err != nil {
		return nil, 0, fmt.Errorf("find blob %q of %q: %w", digest, repository, err)
	}
	size, err := layer.Size()
	if err != nil {
		return nil, 0, fmt.Errorf("find blob %q of %q: %w", digest, repository, err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, 0, fmt.Errorf("read blob %q of %q: %w", digest, repository, err)
	}
	return content, size, nil
}

// Tags lists the tags of a repository.
func (c Client) Tags(ctx context.Context, repository string) ([]string, error) {
	parsed, err := name.NewRepository(repository, c.names()...)
	if err != nil {
		return nil, err
	}
	tags, err := remote.List(parsed, c.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("list tags of %q: %w", repository, err)
	}
	return tags, nil
}

// Status is the code of the HTTP answer that an error stands for, or 0.
func Status(err error) int {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

func (c Client) names() []name.Option {
	if c.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

func (c Client) options(ctx context.Context) []remote.Option {
	options := []remote.Option{remote.WithContext(ctx)}
	if c.Keychain != nil {
		options = append(options, remote.WithAuthFromKeychain(c.Keychain))
	}
	carrier := c.Transport
	if carrier == nil {
		carrier = remote.DefaultTransport.(*http.Transport)
	}
	if c.Insecure {
		carrier = carrier.Clone()
		carrier.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // what was asked for
	}
	return append(options, remote.WithTransport(carrier))
}
