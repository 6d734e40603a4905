package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/node/balancer"
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/registry"
	"github.com/slipway-platform/slipway/registry/registryname"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// sharesRegistry reports whether the storage of the registry is a service that all masters reach,
// such as S3. Then any one of them can run the registry.
func (h *Host) sharesRegistry() bool {
	settings := h.Master.Slipway.Registry
	storage, err := registry.ReadStorage(settings.Directory, settings.Configuration, settings.ReadOnly)
	// The registry reports the error.
	return err == nil && !settings.Disabled && storage.Type() != "filesystem"
}

// registryAddress is the component that follows the registry from master to master.
func (h *Host) registryAddress() (component.Component, error) {
	if h.Master.Slipway.Registry.Disabled {
		return component.Disabled("registry-address"), nil
	}
	client, err := clientFor(h.credentials.ProxyKubeconfig)
	if err != nil {
		return nil, err
	}
	return &node.RegistryAddress{
		Watch: balancer.WatchService(client, registryname.Service), Use: h.useRegistry,
	}, nil
}

func (h *Host) registryAddressFile() string { return h.path("node", "registry-address") }

// useRegistry makes this host pull from the registry at a host:port address, also after a restart.
func (h *Host) useRegistry(address string) error {
	first, _, err := h.firstRegistry()
	if err != nil {
		return err
	}
	if address != first {
		err = atomicfile.Write(h.registryAddressFile(), []byte(address), 0o600)
	} else if err = os.Remove(h.registryAddressFile()); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("record address of registry: %w", err)
	}
	return h.writeRegistryHosts()
}

// writeRegistryHosts configures containerd for the cluster's registry.
func (h *Host) writeRegistryHosts() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	address, authority, err := h.registryServer()
	if err != nil {
		return err
	}
	return containerd.RegistryHosts{
		Dir:     h.Node.Slipway.RegistryConfigDirectory,
		Names:   h.RegistryNames().All(),
		Address: address, CAFile: authority,
	}.Write()
}

// registryServer returns the last known address of the cluster's registry and the file of its
// certificate authority.
func (h *Host) registryServer() (address, authority string, err error) {
	address, authority, err = h.firstRegistry()
	if err != nil {
		return "", "", err
	}
	last, err := os.ReadFile(h.registryAddressFile())
	if errors.Is(err, fs.ErrNotExist) {
		return address, authority, nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read address of registry: %w", err)
	}
	return strings.TrimSpace(string(last)), authority, nil
}

// firstRegistry returns the address at which this host first looks for the registry, and the file
// of its certificate authority.
func (h *Host) firstRegistry() (address, authority string, err error) {
	switch {
	case h.Joined():
		return h.membership.Registry, h.credentials.NodeCA, nil
	case h.usesRemoteRegistry():
		return h.cluster.Registry, h.credentials.CA.Cert, nil
	}
	_, port, err := net.SplitHostPort(h.Master.Slipway.Registry.BindAddress)
	if err != nil {
		return "", "", fmt.Errorf("read address of registry: %w", err)
	}
	return net.JoinHostPort(h.address.String(), port), h.credentials.CA.Cert, nil
}
