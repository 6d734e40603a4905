package platform

import (
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/apigroup/template/instance"
)

// templateInstances make the objects of TemplateInstances. Values that they generate follow from the key that signs tokens.
func (h *host) templateInstances() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(h.identity.ServiceAccountKey)
	if err != nil {
		return nil, fmt.Errorf("read key for template instances: %w", err)
	}
	return &instance.Instances{Client: client, Secret: secret}, nil
}
