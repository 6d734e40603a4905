package image

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// connectTimeout is the timeout for connecting to a registry.
const connectTimeout = 30 * time.Second

// Registry is the registry to which an image is pushed.
type Registry struct {
	// Address is the host:port to connect to, regardless of the image names.
	Address string
	// Authorities contains the CA bundle that verifies the registry's serving certificate, in PEM
	// format.
	Authorities []byte
	// User and Password are the credentials for the registry.
	User, Password string
}

// Push copies an image, for this host's platform, to a registry, and returns its digest in the
// registry. to is the image's new name, such as docker-registry.default.svc:5000/shop/base:latest.
// Push does not send layers that the registry already has.
//
// Errors contain the image's name. A push fails if the image is not on this host, its layers are
// not stored as archives, or the registry rejects it.
func (s Store) Push(ctx context.Context, name, to string, registry Registry) (digest.Digest, error) {
	c, err := s.connect()
	if err != nil {
		return "", err
	}
	defer c.Close()
	target, err := pushable(ctx, c, name)
	if err != nil {
		return "", fmt.Errorf("push image %q: %w", name, err)
	}
	resolver, err := registry.resolver()
	if err != nil {
		return "", err
	}
	if err := c.Push(ctx, to, target, client.WithResolver(resolver), client.WithPlatformMatcher(platforms.Default())); err != nil {
		return "", fmt.Errorf("push image %q to %s: %w", name, to, err)
	}
	return target.Digest, nil
}

// pushable returns an image's manifest. It returns an error unless all of the image's blobs are in
// the store.
func pushable(ctx context.Context, c *client.Client, name string) (ocispec.Descriptor, error) {
	record, err := c.ImageService().Get(ctx, name)
	if errdefs.IsNotFound(err) {
		return ocispec.Descriptor{}, errors.New("it is not on this host; `slipway images list` lists the host's images")
	}
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	target, err := manifestHere(ctx, c.ContentStore(), record.Target)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	_, _, _, missing, err := images.Check(ctx, c.ContentStore(), target, platforms.Default())
	if err == nil && len(missing) > 0 {
		err = errors.New("its layers are not stored as archives on this host, like the layers of slipway's own large images; " +
			"to store them, load the image from its file again with: slipway images load")
	}
	return target, err
}

// manifestHere returns the manifest for this host's platform: target itself or, if target is an
// index, one of its entries.
func manifestHere(ctx context.Context, store content.Store, target ocispec.Descriptor) (ocispec.Descriptor, error) {
	if !images.IsIndexType(target.MediaType) {
		return target, nil
	}
	manifests, err := images.Children(ctx, store, target)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	platform := &matcher{MatchComparer: platforms.Default()}
	for _, manifest := range manifests {
		if images.IsManifestType(manifest.MediaType) && platform.has(ctx, store, manifest) {
			return manifest, nil
		}
	}
	return ocispec.Descriptor{}, platform.none()
}

// resolver returns a resolver for the registry.
func (r Registry) resolver() (remotes.Resolver, error) {
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(r.Authorities) {
		return nil, errors.New("trust registry: the file of its certificate authority contains no PEM certificate")
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, r.Address)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: authorities}}}
	credentials := func(string) (user, password string, err error) { return r.User, r.Password, nil }
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthClient(client), docker.WithAuthCreds(credentials))
	return docker.NewResolver(docker.ResolverOptions{Hosts: func(host string) ([]docker.RegistryHost, error) {
		return []docker.RegistryHost{{
			Client: client, Authorizer: authorizer, Host: host, Scheme: "https", Path: "/v2",
			Capabilities: docker.HostCapabilityResolve | docker.HostCapabilityPush,
		}}, nil
	}}), nil
}
