// Package image loads container images into a host's containerd:
//   - images that slipway creates from programs on the host (pause, tools, slipway itself)
//   - image archives that an administrator provides
//   - images that Service pulls from registries for pods
//
// Created images are reproducible: the same programs result in the same digest on each host and on
// each start. Existing images are not created again. They are pinned, so that the kubelet keeps
// them when the disk is full.
//
// Registries are configured in the registries.d directory in the data directory. It contains a
// directory for each registry, named <host>[:port] (or _default for all other registries), with a
// hosts.toml file. To try a mirror first:
//
//	# registries.d/registry.example.com/hosts.toml
//	server = "https://registry.example.com"
//
//	[host."https://mirror.example.com"]
//	  capabilities = ["pull", "resolve"]
//	  ca = "/etc/ssl/certs/mirror.example.com.crt"
//
// Service reads the file on each pull. containerd's docs/hosts.md describes the format.
package image

import (
	"context"
	"fmt"

	client "github.com/containerd/containerd/v2/client"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// The images that slipway creates. They exist on each host but in no registry, so pods need the
// pull policy IfNotPresent or Never.
const (
	// PauseName is the name of the pod sandbox image.
	PauseName = "localhost/slipway-pause:current"
	// ToolsName is the name of an image with a shell and common small programs, for jobs, examples
	// and troubleshooting.
	ToolsName = "localhost/slipway-tools:current"
	// SelfName is the name of Slipway's own image, for its components that run in pods.
	SelfName = "localhost/slipway:current"
	// DeployerName is the name of the image for deployer pods.
	DeployerName = "localhost/slipway-deployer:current"
	// BuilderName is the name of the image for build pods.
	BuilderName = buildpod.Image
	// RouterName is the name of the image for router pods. The image exists on hosts with HAProxy.
	RouterName = "localhost/slipway-router:current"
	// FailoverName is the name of the image for the pods that `oc adm ipfailover` creates. The
	// image exists on hosts with keepalived.
	FailoverName = "localhost/slipway-ipfailover:current"
	// DeschedulerName is the name of the image for the descheduler's Jobs.
	DeschedulerName = "localhost/slipway-descheduler:current"
	// EgressRouterName, EgressHTTPProxyName and EgressDNSProxyName are the names of the images for
	// egress router pods. The node creates these images when a pod needs them.
	EgressRouterName    = "localhost/slipway-egress-router:current"
	EgressHTTPProxyName = "localhost/slipway-egress-http-proxy:current"
	EgressDNSProxyName  = "localhost/slipway-egress-dns-proxy:current"
	// OAuthProxyName is the name of the image for the sidecar that restricts access to an
	// application to the cluster's users. The node creates the image when a pod needs it.
	OAuthProxyName = "localhost/slipway-oauth-proxy:current"
)

// namespace is the containerd namespace that the CRI plugin uses for the kubelet.
const namespace = "k8s.io"

const (
	// labelPinned is the CRI plugin's label for images that the kubelet must keep. Its value is
	// pinned.
	labelPinned, pinned = "io.cri-containerd.pinned", "pinned"
	// labelContent contains the loaded Image's Content.
	labelContent = "slipway.io/content"
	// labelArchive identifies the archive from which the image was loaded.
	labelArchive = "slipway.io/archive"
)

// Image is an image that is created on this host. It consists of a new layer on top of the layers
// of its base image and archives, if any.
type Image struct {
	// Name is the image's reference.
	Name string
	// Content is a fingerprint of the content: two images with the same Name and Content are
	// identical. It is computed without creating the layer.
	Content string

	// base is the name of the base image in the store, or "" if there is none.
	base    string
	entries []entry
	config  ocispec.ImageConfig
	// layers contains the base image's layers. diffIDs contains the digests of their uncompressed
	// content.
	layers  []ocispec.Descriptor
	diffIDs []digest.Digest
	// archives are the paths of tar files, compressed or uncompressed, which become layers on top
	// of the base image's layers.
	archives []string
	// unpackedOnly means that the layer's archive is deleted after the layer has been unpacked, so
	// that a large image does not occupy disk space twice.
	unpackedOnly bool
}

// Store is a containerd instance's image store.
type Store struct {
	// Socket is containerd's Unix socket.
	Socket string
	// Snapshotter is the snapshotter that containerd's configuration specifies.
	Snapshotter string
}

// connect returns a client, which the caller must close. If containerd is not running yet, calls
// fail until it is running.
func (s Store) connect() (*client.Client, error) {
	c, err := client.New(s.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return c, nil
}

// has reports whether img is loaded, complete and unpacked.
func (s Store) has(ctx context.Context, c *client.Client, img Image) bool {
	image, err := c.GetImage(ctx, img.Name)
	if err != nil || image.Labels()[labelContent] != img.Content {
		return false
	}
	unpacked, err := image.IsUnpacked(ctx, s.Snapshotter)
	return err == nil && unpacked
}
