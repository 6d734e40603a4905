// Package registryclient reads manifests and blobs from container registries with credentials from
// pull secrets.
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

// Client reads manifests and blobs from registries.
type Client struct {
	// Keychain provides credentials. nil means no credentials.
	Keychain authn.Keychain
	// Insecure makes the client accept every certificate, and use HTTP if the registry does not
	// serve HTTPS.
	Insecure bool
	// Transport sends requests and decides which certificates to accept. nil means the process's
	// default transport, which can reach every server.
	Transport http.RoundTripper
	// Account limits the number of bytes that sessions read. nil means no limit.
	Account *Account
	// Via is sent in the Via header when a registry sends a request on behalf of another request.
	// Source: RFC 9110, 7.6.3.
	Via []string
}

// Manifest is a manifest as returned by a registry.
type Manifest struct {
	MediaType, Digest string
	Bytes             []byte
}

// Manifest reads the manifest for a reference such as "registry.example.com/app:v1". It fails for
// manifests larger than 4 MiB, distribution's limit.
func (c Client) Manifest(ctx context.Context, reference string) (Manifest, error) {
	session, err := c.Session()
	if err != nil {
		return Manifest{}, err
	}
	return session.Manifest(ctx, reference)
}

// Blob opens a blob in a repository such as "registry.example.com/app" and returns the blob's size.
// Reading verifies the digest and returns an error at the end if the digest is wrong. The caller
// must close the blob. Errors have the type Error.
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

// Names returns the options for parsing image names. The options specify whether HTTP is allowed.
func (c Client) Names() []name.Option {
	if c.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// options returns the options for requests that carrier sends.
func (c Client) options(carrier http.RoundTripper) (options []remote.Option) {
	if c.Keychain != nil {
		options = append(options, remote.WithAuthFromKeychain(c.Keychain))
	}
	if len(c.Via) > 0 {
		carrier = passing{carrier, c.Via}
	}
	return append(options, remote.WithTransport(carrier))
}

// passing is a transport that adds the Via header to requests.
type passing struct {
	http.RoundTripper
	via []string
}

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header["Via"] = p.via
	return p.RoundTripper.RoundTrip(request)
}

// Carrier returns a transport for requests to registries. It accepts the same certificates as the
// client.
func (c Client) Carrier() http.RoundTripper {
	if c.Transport != nil {
		return c.Transport
	}
	carrier := remote.DefaultTransport.(*http.Transport)
	if c.Insecure {
		carrier = carrier.Clone()
		carrier.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the user has set Insecure
	}
	return carrier
}
