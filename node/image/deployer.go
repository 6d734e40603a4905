package image

import (
	"fmt"
	"io"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// deployerPath is the path of the program in the image.
const deployerPath = "usr/bin/slipway-deployer"

// Deployer returns the image of deployer pods, which contains only the deployer embedded in
// slipway.
func Deployer() (Image, error) {
	deployer, content, err := payload.Open(manifest.Deployer)
	if err != nil {
		return Image{}, fmt.Errorf("create image %s: %w", DeployerName, err)
	}
	content.Close()
	entries := append(account(), dir("usr", 0o755), dir("usr/bin", 0o755), entry{
		path: deployerPath, mode: 0o755, size: deployer.Size,
		open: func() (io.ReadCloser, error) {
			_, content, err := payload.Open(manifest.Deployer)
			return content, err
		},
	})
	return Image{
		Name:    DeployerName,
		Content: layoutVersion + " " + deployer.SHA256,
		entries: entries,
		config: ocispec.ImageConfig{
			Entrypoint: []string{"/" + deployerPath},
			Env:        []string{"PATH=/usr/bin"},
			WorkingDir: "/",
		},
		unpackedOnly: true,
	}, nil
}
