package image

import "github.com/slipway-platform/slipway/internal/payload/manifest"

// Deployer returns the image for deployer pods, which contains only the deployer that is embedded
// in slipway.
func Deployer() (Image, error) {
	image, err := singleProgram(DeployerName, manifest.Deployer)
	image.config.Env = []string{"PATH=/usr/bin"}
	return image, err
}
