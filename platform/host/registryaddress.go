package host

import (
	"net"
	"strconv"

	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/registry"
)

// SharesRegistry reports whether the registry's storage is a service that all masters can reach,
// such as S3. If so, any master can run the registry.
func (h *Host) SharesRegistry() bool {
	settings := h.Master.Slipway.Registry
	storage, err := registry.ReadStorage(settings.Directory, settings.Configuration, settings.ReadOnly)
	// Ignore the error, because the registry reports it.
	return err == nil && !settings.Disabled && storage.Type() != "filesystem"
}

// NewRegistryAddress returns the record that tracks the address of the master that runs the
// registry.
func (h *Host) NewRegistryAddress() (*node.RegistryAddress, error) {
	first, err := h.firstRegistry()
	if err != nil {
		return nil, err
	}
	files := pki.FilesIn(h.PKIDir())
	authority := files.CA.Cert
	if h.Joined() {
		authority = files.NodeCA
	}
	return &node.RegistryAddress{
		File: h.Path("node", "registry-address"), First: first,
		Hosts: containerd.RegistryHosts{
			Dir: h.Node.Slipway.RegistryConfigDirectory, Names: h.RegistryNames().All(), CAFile: authority,
		},
	}, nil
}

// LastRegistryAddress returns the last known host:port of the master that runs the registry.
func (h *Host) LastRegistryAddress() (string, error) {
	address, err := h.NewRegistryAddress()
	if err != nil {
		return "", err
	}
	return address.Last()
}

// writeRegistryHosts configures containerd for the cluster's registry.
func (h *Host) writeRegistryHosts() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	address, err := h.NewRegistryAddress()
	if err != nil {
		return err
	}
	return address.Configure()
}

// firstRegistry returns the address at which this host first tries to connect to the registry.
func (h *Host) firstRegistry() (string, error) {
	switch {
	case h.Joined():
		return h.Membership.Registry, nil
	case h.UsesRemoteRegistry():
		return h.Cluster.Registry, nil
	}
	if !h.Address.IsValid() {
		if err := h.findAddress(); err != nil {
			return "", err
		}
	}
	_, port := h.Master.RegistryAddress()
	return net.JoinHostPort(h.Address.String(), strconv.Itoa(port)), nil
}
