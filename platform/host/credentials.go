package host

import (
	"slices"

	"github.com/slipway-platform/slipway/pki"
)

// PKISpec describes this host's credentials.
func (h *Host) PKISpec() pki.Spec {
	return pki.Spec{
		Dir:             h.PKIDir(),
		AdminKubeconfig: h.AdminKubeconfig(),
		APIURL:          h.APIURL(h.PublicAddress().String()),
		LoopbackURL:     h.APIURL("127.0.0.1"),
		NodeURL:         h.nodeURL(),
		NodeName:        h.Node.NodeName,
		APIHosts:        slices.Concat(h.Names(), h.Master.PublicHosts(), []string{h.Master.APIServiceIP().String()}),
		NodeHosts:       h.Names(),
		RegistryHosts:   h.RegistryNames().Hosts(),
		ClusterDomain:   h.Node.DNSDomain,
		LeafLifetime:    h.Master.Slipway.CertificateLifetime.Duration,
		CALifetime:      h.Master.Slipway.CALifetime.Duration,
	}
}

// ReplaceKeys replaces all keys and certificates of this host. It returns the number of issued
// certificates and kubeconfigs, and the directory that contains them.
func (h *Host) ReplaceKeys() (count int, dir string, err error) {
	if err := h.findAddress(); err != nil {
		return 0, "", err
	}
	spec := h.PKISpec()
	spec.ReplaceKeys = true
	credentials, err := pki.Ensure(spec)
	if err != nil {
		return 0, "", err
	}
	return len(credentials.Issued), spec.Dir, nil
}
