// Package image puts container images into the containerd of a host without a registry: those that slipway makes of programs on the
// host (pause, tools, slipway itself), and archives that an administrator brings along.
//
// The images that are made here are reproducible: the same programs give the same digest on each host and at each start, and
// an image that is there already is not made again. They are pinned, so that kubelet does not remove them when the disk gets full.
//
// Where there are registries, containerd is given the directory registries.d of the data directory. It has a directory for each
// registry, named <host>[:port] (or _default for all others), with a file hosts.toml. To ask a mirror first:
//
//	# registries.d/registry.example.com/hosts.toml
//	server = "https://registry.example.com"
//
//	[host."https://mirror.example.com"]
//	  capabilities = ["pull", "resolve"]
//	  ca = "/etc/ssl/certs/mirror.example.com.crt"
//
// containerd reads the file at each pull. The format is described in containerd's docs/hosts.md.
package image

import (
	"context"
	"fmt"

	client "github.com/containerd/containerd/v2/client"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The images that slipway makes. They exist on each host and are in no registry: pods use them with the pull policy IfNotPresent or Never.
const (
	// PauseName is the image of pod sandboxes.
	PauseName = "localhost/slipway-pause:current"
	// ToolsName is an image with a shell and the usual small programs, for jobs, examples and diagnosis.
	ToolsName = "localhost/slipway-tools:current"
	// SelfName is slipway as an image, for the parts of slipway that run in pods.
	SelfName = "localhost/slipway:current"
	// DeployerName is what deployer pods run.
	DeployerName = "localhost/slipway-deployer:current"
	// BuilderName is what the pods of builds run.
	BuilderName = "localhost/slipway-builder:current"
	// RouterName is what the pods of routers run, on hosts with HAProxy.
	RouterName = "localhost/slipway-router:current"
	// FailoverName is what the pods of `oc adm ipfailover` run, on hosts with keepalived.
	FailoverName = "localhost/slipway-ipfailover:current"
)

// namespace is the one of containerd's that the CRI plugin, and so kubelet, uses.
const namespace = "k8s.io"

const (
	// labelPinned with the value pinned is the CRI plugin's mark of images that kubelet must not remove.
	labelPinned, pinned = "io.cri-containerd.pinned", "pinned"
	// labelContent has the Content of the Image that was loaded.
	labelContent = "slipway.io/content"
	// labelArchive identifies the archive that the image comes from.
	labelArchive = "slipway.io/archive"
)

// Image is an image that is made on this host: a layer, above those of its base and of archives if it has them.
type Image struct {
	// Name is its reference.
	Name string
	// Content identifies its content: two images with the same Name and Content are the same. It is known without making the layer.
	Content string

	// base is the name of the image of the store that it stands on; empty for none.
	base    string
	entries []entry
	config  ocispec.ImageConfig
	// layers are those of the base, and diffIDs the digests of what is in them.
	layers  []ocispec.Descriptor
	diffIDs []digest.Digest
	// archives are the paths of tar files, plain or compressed, whose contents are layers above those of the base.
	archives []string
	// unpackedOnly: the layer's archive is not kept once it is unpacked, which saves the space of a large image a second time.
	unpackedOnly bool
}

// Store is the image store of a containerd.
type Store struct {
	// Socket is containerd's Unix socket.
	Socket string
	// Snapshotter is the one that containerd is configured to use.
	Snapshotter string
}

// connect returns a client; the caller closes it. containerd need not be running yet: calls fail until it is.
func (s Store) connect() (*client.Client, error) {
	c, err := client.New(s.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("connect to containerd: %w", err)
	}
	return c, nil
}

// has reports whether img is loaded, complete and unpacked.
func (s Store) has(ctx context.Context, c *client.Client, img Image) bool {
	loaded, err := c.GetImage(ctx, img.Name)
	if err != nil || loaded.Labels()[labelContent] != img.Content {
		return false
	}
	unpacked, err := loaded.IsUnpacked(ctx, s.Snapshotter)
	return err == nil && unpacked
}
