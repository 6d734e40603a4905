package host

import (
	"slices"

	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// RegistryNames returns the names of the cluster's registry.
func (h *Host) RegistryNames() registryname.Names {
	policy := h.Master.ImagePolicyConfig
	return registryname.Names{
		Internal: policy.InternalRegistryHostname, External: policy.ExternalRegistryHostname,
		RouteDomain: h.Master.RoutingConfig.Subdomain, ClusterDomain: h.Node.DNSDomain,
	}
}

// Outbound returns the dialer for connections to servers that users specify.
func (h *Host) Outbound() *outbound.Dialer {
	settings := h.Master.Slipway.Outbound
	policy := outbound.Policy{
		Cluster:         slices.Concat(h.Master.PodNetworks(), h.Master.ServiceNetworks()),
		Hosts:           h.HostAddresses.List,
		AllowedNetworks: settings.Networks(),
		AllowedHosts:    append(settings.AllowedHosts, h.ConfiguredRegistries()...),
	}
	if ingress := h.Master.IngressNetwork(); ingress.IsValid() {
		policy.Cluster = append(policy.Cluster, ingress)
	}
	return outbound.New(policy)
}

// ConfiguredRegistries returns the registries in the configuration: the cluster's own registry and
// the registries from which imports are allowed.
func (h *Host) ConfiguredRegistries() []string {
	allowed := h.Master.ImportRegistries()
	if h.Master.Slipway.Registry.Disabled {
		return allowed
	}
	return append(h.RegistryNames().All(), allowed...)
}
