package platform

import (
	"net"
	"strconv"

	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/registry/registryname"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// sharesRegistry reports whether the registry's storage is a service that all masters can reach,
// such as S3. If so, any master can run the registry.
func (h *Host) sharesRegistry() bool {
	settings := h.Master.Slipway.Registry
	storage, err := registry.ReadStorage(settings.Directory, settings.Configuration, settings.ReadOnly)
	// The registry reports the error.
	return err == nil && !settings.Disabled && storage.Type() != "filesystem"
}

// registryAddress returns the component that tracks which master runs the registry.
func (h *Host) registryAddress() (component.Component, error) {
	if h.Master.Slipway.Registry.Disabled {
		return component.Disabled("registry-address"), nil
	}
	client, err := pki.NewClient(h.credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	address, err := h.newRegistryAddress()
	if err != nil {
		return nil, err
	}
	address.Watch = balancer.WatchService(client, registryname.Service)
	return address, nil
}

func (h *Host) newRegistryAddress() (*node.RegistryAddress, error) {
	first, authority, err := h.firstRegistry()
	if err != nil {
		return nil, err
	}
	return &node.RegistryAddress{
		File: h.path("node", "registry-address"), First: first,
		Hosts: containerd.RegistryHosts{
			Dir: h.Node.Slipway.RegistryConfigDirectory, Names: h.RegistryNames().All(), CAFile: authority,
		},
	}, nil
}

// writeRegistryHosts configures containerd for the cluster's registry.
func (h *Host) writeRegistryHosts() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	address, err := h.newRegistryAddress()
	if err != nil {
		return err
	}
	return address.Configure()
}

// firstRegistry returns the address at which this host first tries to connect to the registry, and
// the registry's CA file.
func (h *Host) firstRegistry() (address, authority string, err error) {
	switch {
	case h.Joined():
		return h.membership.Registry, h.credentials.NodeCA, nil
	case h.usesRemoteRegistry():
		return h.cluster.Registry, h.credentials.CA.Cert, nil
	}
	_, port := h.Master.RegistryAddress()
	return net.JoinHostPort(h.address.String(), strconv.Itoa(port)), h.credentials.CA.Cert, nil
}
