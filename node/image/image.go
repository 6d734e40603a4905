// Package image loads container images into a host's containerd: images that slipway creates from
// programs on the host (pause, tools, slipway itself), archives of an administrator, and images
// that Service pulls from registries for pods.
//
// Created images are reproducible: the same programs result in the same digest on each host and at
// each start, and existing images are not created again. They are pinned, so that the kubelet keeps
// them when the disk is full.
//
// Registries are configured in the directory registries.d of the data directory. It contains a
// directory for each registry, named <host>[:port] (or _default for all others), with a file
// hosts.toml. To use a mirror first:
//
//	# registries.d/registry.example.com/hosts.toml
//	server = "https://registry.example.com"
//
//	[host."https://mirror.example.com"]
//	  capabilities = ["pull", "resolve"]
//	  ca = "/etc/ssl/certs/mirror.example.com.crt"
//
// Service reads the file at each pull. containerd's docs/hosts.md describes the format.
package image

import (
	"context"
	"fmt"

	client "github.com/containerd/containerd/v2/client"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// The images that slipway creates. They exist on each host and in no registry: pods need the pull
// policy IfNotPresent or Never.
const (
	// PauseName is the image of pod sandboxes.
	PauseName = "localhost/slipway-pause:current"
	// ToolsName is an image with a shell and common small programs, for jobs, examples and
	// diagnosis.
	ToolsName = "localhost/slipway-tools:current"
	// SelfName is slipway as an image, for its components that run in pods.
	SelfName = "localhost/slipway:current"
	// DeployerName is the image of deployer pods.
	DeployerName = "localhost/slipway-deployer:current"
	// BuilderName is the image of build pods.
	BuilderName = buildpod.Image
	// RouterName is the image of router pods, on hosts with HAProxy.
	RouterName = "localhost/slipway-router:current"
	// FailoverName is the image of pods of `oc adm ipfailover`, on hosts with keepalived.
	FailoverName = "localhost/slipway-ipfailover:current"
	// DeschedulerName is the image of the descheduler's Jobs.
	DeschedulerName = "localhost/slipway-descheduler:current"
	// EgressRouterName, EgressHTTPProxyName and EgressDNSProxyName are the images of egress router
	// pods. The node creates them when a pod needs one.
	EgressRouterName    = "localhost/slipway-egress-router:current"
	EgressHTTPProxyName = "localhost/slipway-egress-http-proxy:current"
	EgressDNSProxyName  = "localhost/slipway-egress-dns-proxy:current"
	// OAuthProxyName is the image of the sidecar that lets only users of the cluster reach an
	// application. The node creates it when a pod needs it.
	OAuthProxyName = "localhost/slipway-oauth-proxy:current"
)

// namespace is containerd's namespace of the CRI plugin, and thus of the kubelet.
const namespace = "k8s.io"

const (
	// labelPinned with the value pinned is the CRI plugin's label of images that the kubelet must
	// keep.
	labelPinned, pinned = "io.cri-containerd.pinned", "pinned"
	// labelContent contains the Content of the loaded Image.
	labelContent = "slipway.io/content"
	// labelArchive identifies the archive of the image.
	labelArchive = "slipway.io/archive"
)

// Image is an image that is created on this host: a layer above the layers of its base and of
// archives, if it has them.
type Image struct {
	// Name is its reference.
	Name string
	// Content identifies the content: two images with the same Name and Content are the same. It is
	// computed without creating the layer.
	Content string

	// base is the name of the base image in the store; empty for none.
	base    string
	entries []entry
	config  ocispec.ImageConfig
	// layers are the layers of the base, and diffIDs the digests of their content.
	layers  []ocispec.Descriptor
	diffIDs []digest.Digest
	// archives are the paths of tar files, with or without compression, which become layers above the
	// base's.
	archives []string
	// unpackedOnly means that the archive of the layer is deleted after unpacking, which saves the
	// space of a second copy of a large image.
	unpackedOnly bool
}

// Store is the image store of a containerd.
type Store struct {
	// Socket is containerd's Unix socket.
	Socket string
	// Snapshotter is the snapshotter in containerd's configuration.
	Snapshotter string
}

// connect returns a client; the caller closes it. If containerd does not run yet, calls fail until
// it does.
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
