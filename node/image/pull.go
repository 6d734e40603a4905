package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/distribution/reference"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// managed are the labels of images that containerd's CRI plugin takes for its own.
func managed() map[string]string { return map[string]string{"io.cri-containerd.image": "managed"} }

// puller pulls images into containerd as its CRI plugin does.
type puller struct {
	client      *client.Client
	snapshotter string
	hosts       hosts
}

// maxDownloads is the number of layers of an image that are fetched at a time, the CRI plugin's
// own.
const maxDownloads = 3

// pull pulls an image, unpacks it, names it as the CRI plugin does, and returns its ID, which is
// the digest of its configuration.
func (p *puller) pull(ctx context.Context, ref reference.Named, credentials credentialsFunc) (id string, err error) {
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: p.hosts.of(ctx, credentials)})
	image, err := p.client.Pull(ctx, ref.String(),
		client.WithResolver(resolver), client.WithPullSnapshotter(p.snapshotter), client.WithPullUnpack,
		client.WithPullLabels(managed()), client.WithMaxConcurrentDownloads(maxDownloads))
	if err != nil {
		return "", err
	}
	config, err := image.Config(ctx)
	if err != nil {
		return "", fmt.Errorf("read configuration of image: %w", err)
	}
	id = config.Digest.String()
	for _, name := range recordNames(ref, id, image.Target().Digest.String()) {
		if err := replace(ctx, p.client.ImageService(), images.Image{Name: name, Target: image.Target(), Labels: managed()}); err != nil {
			return "", fmt.Errorf("name image %q: %w", name, err)
		}
	}
	return id, nil
}

// recordNames returns the names under which the CRI plugin has a pulled image: its ID, the
// repository with the digest, and the tag if it has one.
func recordNames(ref reference.Named, id, digest string) []string {
	list := []string{id, ref.Name() + "@" + digest}
	if tagged, ok := ref.(reference.NamedTagged); ok {
		list = append(list, reference.TagNameOnly(tagged).String())
	}
	return list
}

// credentialsFunc returns the user and password, or the token, for a server.
type credentialsFunc func(host string) (user, secret string, err error)

// credentials returns the credentials that kubelet sends. They are for one server if they name one.
func credentials(auth *criapi.AuthConfig) credentialsFunc {
	return func(host string) (user, secret string, err error) {
		if auth == nil || auth.ServerAddress != "" && !isServer(auth.ServerAddress, host) {
			return "", "", nil
		}
		if auth.Username != "" {
			return auth.Username, auth.Password, nil
		}
		if auth.IdentityToken != "" {
			return "", auth.IdentityToken, nil
		}
		if auth.Auth == "" {
			return "", "", nil
		}
		decoded, err := base64.StdEncoding.DecodeString(auth.Auth)
		user, secret, ok := strings.Cut(string(decoded), ":")
		if err != nil || !ok {
			return "", "", errors.New("decode credentials of the registry: they are not base64 of user:password")
		}
		return user, strings.Trim(secret, "\x00"), nil
	}
}

// isServer reports whether the address of a server, with or without a scheme and a path, names the
// host.
func isServer(address, host string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	server, _, _ := strings.Cut(address, "/")
	return server == host
}
