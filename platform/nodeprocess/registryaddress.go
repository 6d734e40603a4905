package nodeprocess

import (
	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/registry/registryname"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// registryAddress returns the component that tracks which master runs the registry.
func (h *Host) registryAddress() (component.Component, error) {
	if h.Master.Slipway.Registry.Disabled {
		return component.Disabled("registry-address"), nil
	}
	client, err := pki.NewClient(h.Credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	address, err := h.NewRegistryAddress()
	if err != nil {
		return nil, err
	}
	address.Watch = balancer.WatchService(client, registryname.Service)
	return address, nil
}
