package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// transport returns an HTTP transport that connects to the cluster's address, regardless of the
// host name. It trusts only the cluster's CA.
func (p *project) transport() *http.Transport {
	p.t.Helper()
	authority, err := os.ReadFile(p.Path("pki", "ca.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(p.Address.String(), port))
		},
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// options returns options that make a third-party client library authenticate with a token.
func (p *project) options(token string) []remote.Option {
	return []remote.Option{
		remote.WithTransport(p.transport()), remote.WithContext(p.t.Context()),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "any", Password: token})),
	}
}

// tag returns the reference of a tag in one of the project's streams, at the given registry
// address.
func (p *project) tag(registry, ref string) name.Tag {
	p.t.Helper()
	tag, err := name.NewTag(registry + "/" + p.Namespace + "/" + ref)
	if err != nil {
		p.t.Fatal(err)
	}
	return tag
}

// direct returns the address of the registry's own port, which is not behind a route.
func (p *project) direct() string { return p.Address.String() + ":5000" }

// checkContent reads an image completely and verifies it against its manifest.
func checkContent(reference name.Reference, options ...remote.Option) error {
	image, err := remote.Image(reference, options...)
	if err != nil {
		return err
	}
	if _, err := image.RawConfigFile(); err != nil {
		return fmt.Errorf("read configuration of %s: %w", reference, err)
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return fmt.Errorf("read layer of %s: %w", reference, err)
		}
		_, err = io.Copy(io.Discard, content) // reading to the end also verifies the digest
		content.Close()
		if err != nil {
			return fmt.Errorf("read layer of %s: %w", reference, err)
		}
	}
	return nil
}

// noise returns an image with random bytes.
func (p *project) noise(size int64) v1.Image {
	p.t.Helper()
	image, err := random.Image(size, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	return mutate.MediaType(image, types.OCIManifestSchema1)
}

// request sends a request to the registry and returns the status code and the body.
func (p *project) request(method, path, token, body string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, "https://"+p.direct()+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.SetBasicAuth("any", token)
	response, err := (&http.Client{Transport: p.transport()}).Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
