package platform

import (
	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
	"github.com/slipway-platform/slipway/pki"
)

// prepare creates what the processes need before they start: addresses, credentials and files. The
// supervisor and each process call it; only the first call changes something.
func (h *Host) prepare() (err error) {
	if err := h.findAddress(); err != nil {
		return err
	}
	if h.credentials, err = pki.Ensure(h.pkiSpec()); err != nil {
		return err
	}
	if err := h.writeRegistryHosts(); err != nil {
		return err
	}
	if users := h.DeveloperFile(); users != "" {
		return htpasswd.EnsureFirstUser(users, Developer, h.DeveloperPassword())
	}
	return nil
}

// Developer is the user of the first start.
const Developer = "developer"

// writeRegistryHosts configures containerd for the cluster's registry.
func (h *Host) writeRegistryHosts() error {
	if h.Master.Slipway.Registry.Disabled {
		return nil
	}
	address, err := h.registryAddress()
	if err != nil {
		return err
	}
	return containerd.RegistryHosts{
		Dir:     h.Node.Slipway.RegistryConfigDirectory,
		Names:   h.RegistryNames().All(),
		Address: address, CAFile: h.credentials.CA.Cert,
	}.Write()
}
