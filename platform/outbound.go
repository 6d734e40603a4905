package platform

import (
	"net/netip"
	"strings"

	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/registry"
)

// outbound makes the connections of this process to servers that users name.
func (h *host) outbound() *outbound.Dialer {
	pods, _ := h.Master.ClusterNetwork()
	settings := h.Master.Slipway.Outbound
	policy := outbound.Policy{
		Cluster:         []netip.Prefix{pods, h.Master.ServiceNetwork()},
		AllowedNetworks: prefixes(settings.AllowedNetworks),
		AllowedHosts:    append(settings.AllowedHosts, h.registriesNamed()...),
	}
	if ingress := h.Master.IngressNetwork(); ingress.IsValid() {
		policy.Cluster = append(policy.Cluster, ingress)
	}
	return outbound.New(policy)
}

// registriesNamed are the registries that the configuration names: the cluster's own, and those
// that images may be imported from.
func (h *host) registriesNamed() []string {
	var names []string
	if !h.Master.Slipway.Registry.Disabled {
		names = append(h.registryHosts(), registry.ServiceHost)
	}
	if allowed := h.Master.ImagePolicyConfig.AllowedRegistriesForImport; allowed != nil {
		for _, one := range *allowed {
			if !strings.ContainsAny(one.DomainName, "*?[") {
				names = append(names, one.DomainName)
			}
		}
	}
	return names
}

// prefixes reads networks, which the configuration has checked.
func prefixes(texts []string) []netip.Prefix {
	var networks []netip.Prefix
	for _, text := range texts {
		if network, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, network.Masked())
		}
	}
	return networks
}
