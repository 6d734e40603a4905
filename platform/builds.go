package platform

import (
	"github.com/slipway-platform/slipway/apigroup/build/building"
	"github.com/slipway-platform/slipway/internal/version"
)

// builderImage is the image of build pods.
const builderImage = "localhost/slipway-builder:current"

// builds are the controllers of builds.
func (h *host) builds() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &building.Controllers{Client: client, Image: builderImage, Version: version.Slipway()}, nil
}
