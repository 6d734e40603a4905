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

// transport reaches the cluster by any name: all are this cluster's one address. It trusts the
// cluster's authority alone.
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

// options returns those of a client library that is not ours, with a token.
func (p *project) options(token string) []remote.Option {
	return []remote.Option{
		remote.WithTransport(p.transport()), remote.WithContext(p.t.Context()),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "any", Password: token})),
	}
}

// tag returns a tag of a stream of the project in a registry.
func (p *project) tag(registry, ref string) name.Tag {
	p.t.Helper()
	tag, err := name.NewTag(registry + "/" + p.Namespace + "/" + ref)
	if err != nil {
		p.t.Fatal(err)
	}
	return tag
}

// direct is the registry at its own port.
func (p *project) direct() string { return p.Address.String() + ":5000" }

// whole reads all of an image and says whether it is what its manifest says.
func whole(reference name.Reference, options ...remote.Option) error {
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
		_, err = io.Copy(io.Discard, content) // compares the digest
		content.Close()
		if err != nil {
			return fmt.Errorf("read layer of %s: %w", reference, err)
		}
	}
	return nil
}

// noise returns an image of random bytes.
func (p *project) noise(size int64) v1.Image {
	p.t.Helper()
	image, err := random.Image(size, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	return mutate.MediaType(image, types.OCIManifestSchema1)
}

// request asks the registry itself and gives status and body.
func (p *project) request(method, path, token, body string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, "https://"+p.direct()+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.SetBasicAuth("any", token)
	answer, err := (&http.Client{Transport: p.transport()}).Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}
