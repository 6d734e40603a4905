package image

import (
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// egressRouterPath is the path of the program in the images.
const egressRouterPath = "usr/bin/slipway-egress-router"

// EgressRouter returns an image of egress router pods, which contains only the program embedded in
// slipway. args are the program's arguments (see package egressrouter).
func EgressRouter(name string, args ...string) (Image, error) {
	router, content, err := payload.Open(manifest.EgressRouter)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", name, err)
	}
	content.Close()
	entries := append(account(), dir("usr", 0o755), dir("usr/bin", 0o755), entry{
		path: egressRouterPath, mode: 0o755, size: router.Size,
		open: func() (io.ReadCloser, error) {
			_, content, err := payload.Open(manifest.EgressRouter)
			return content, err
		},
	})
	return Image{
		Name:    name,
		Content: layoutVersion + " " + router.SHA256,
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: append([]string{"/" + egressRouterPath}, args...),
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}
