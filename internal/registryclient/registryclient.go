// Package registryclient reads manifests and blobs of container registries with the credentials of pull secrets.
package registryclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Client reads registries.
type Client struct {
	// Keychain finds credentials; nil means none.
	Keychain authn.Keychain
	// Insecure accepts every certificate, and HTTP where HTTPS does not answer.
	Insecure bool
	// Transport carries requests, with the certificates that it accepts; nil means the process's,
	// which reaches every server.
	Transport http.RoundTripper
	// Account bounds what sessions read; nil is without bounds.
	Account *Account
	// Via is sent in the header of that name: on whose behalf a registry asks another one. Source: RFC 9110, 7.6.3.
	Via []string
}

// Manifest is a manifest as a registry answers it.
type Manifest struct {
	MediaType, Digest string
	Bytes             []byte
}

// Manifest reads the manifest of a reference such as "registry.example.com/app:v1". One of more than 4 MiB, the most that distribution takes, is an error.
func (c Client) Manifest(ctx context.Context, reference string) (Manifest, error) {
	session, err := c.Session()
	if err != nil {
		return Manifest{}, err
	}
	return session.Manifest(ctx, reference)
}

// Blob opens a blob of a repository such as "registry.example.com/app", and tells its size. What is read is checked against the digest: at the end
// a wrong blob is an error. The caller closes it. Errors are of the type Error.
func (c Client) Blob(ctx context.Context, repository, digest string) (io.ReadCloser, int64, error) {
	parsed, err := name.NewDigest(repository+"@"+digest, c.Names()...)
	if err != nil {
		return nil, 0, err
	}
	layer, err := remote.Layer(parsed, append(c.options(c.Carrier()), remote.WithContext(ctx))...)
	if err != nil {
		return nil, 0, fmt.Errorf("find blob %q of %q: %w", digest, repository, explain(err))
	}
	size, err := layer.Size()
	if err != nil {
		return nil, 0, fmt.Errorf("find blob %q of %q: %w", digest, repository, explain(err))
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, 0, fmt.Errorf("read blob %q of %q: %w", digest, repository, explain(err))
	}
	return content, size, nil
}

// Names are the options by which names of images are read: whether their registry may be asked by HTTP.
func (c Client) Names() []name.Option {
	if c.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// options are those of requests that carrier carries.
func (c Client) options(carrier http.RoundTripper) (options []remote.Option) {
	if c.Keychain != nil {
		options = append(options, remote.WithAuthFromKeychain(c.Keychain))
	}
	if len(c.Via) > 0 {
		carrier = passing{carrier, c.Via}
	}
	return append(options, remote.WithTransport(carrier))
}

// passing carries requests and says who passes them on.
type passing struct {
	http.RoundTripper
	via []string
}

// RoundTrip carries a request.
func (p passing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header["Via"] = p.via
	return p.RoundTripper.RoundTrip(request)
}

// Carrier carries requests to registries; it accepts the certificates that the client does.
func (c Client) Carrier() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	carrier := remote.DefaultTransport.(*http.Transport)
	if c.Insecure {
		carrier = carrier.Clone()
		carrier.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // what was asked for
	}
	return carrier
}
