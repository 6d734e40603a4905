package platform

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/registry"
)

// RegistryName returns the host of the registry in image references of streams.
func (h *Host) RegistryName() string {
	if name := h.Master.ImagePolicyConfig.InternalRegistryHostname; name != "" {
		return name
	}
	return registry.ServiceHost
}

// registryHosts returns the configured names of the registry, with ports, without that of its
// service.
func (h *Host) registryHosts() []string {
	policy := h.Master.ImagePolicyConfig
	names := []string{policy.InternalRegistryHostname, policy.ExternalRegistryHostname, h.registryRoute()}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// registryRoute returns the host of the route to the registry.
func (h *Host) registryRoute() string {
	return "docker-registry-default." + h.Master.RoutingConfig.Subdomain
}

// publicRegistry returns the name of the registry for clients outside of the cluster: the
// configured name, or the host of the route. It is "" if the route's host is in the domain of the
// cluster, which other machines cannot resolve.
func (h *Host) publicRegistry() string {
	name := h.Master.ImagePolicyConfig.ExternalRegistryHostname
	if name != "" || strings.HasSuffix(h.registryRoute(), ".svc."+h.Node.DNSDomain) {
		return name
	}
	return h.registryRoute()
}

// registryNames returns the names of the registry for its certificate, without ports.
func (h *Host) registryNames() []string {
	names := []string{h.registryRoute()}
	for _, name := range h.registryHosts() {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		names = append(names, name)
	}
	return names
}

// registryAddress returns the address of the registry on this machine.
func (h *Host) registryAddress() (string, error) {
	_, port, err := net.SplitHostPort(h.Master.Slipway.Registry.BindAddress)
	if err != nil {
		return "", fmt.Errorf("read address of registry: %w", err)
	}
	return net.JoinHostPort(h.address.String(), port), nil
}

// outbound returns the dialer for connections to servers that users name.
func (h *Host) outbound() *outbound.Dialer {
	pods, _ := h.Master.ClusterNetwork()
	settings := h.Master.Slipway.Outbound
	policy := outbound.Policy{
		Cluster:         []netip.Prefix{pods, h.Master.ServiceNetwork()},
		AllowedNetworks: prefixes(settings.AllowedNetworks),
		AllowedHosts:    append(settings.AllowedHosts, h.configuredRegistries()...),
	}
	if ingress := h.Master.IngressNetwork(); ingress.IsValid() {
		policy.Cluster = append(policy.Cluster, ingress)
	}
	return outbound.New(policy)
}

// configuredRegistries returns the registries that the configuration names: the cluster's own, and
// those that it allows for imports.
func (h *Host) configuredRegistries() []string {
	var names []string
	if !h.Master.Slipway.Registry.Disabled {
		names = append(h.registryHosts(), registry.ServiceHost)
	}
	if allowed := h.Master.ImagePolicyConfig.AllowedRegistriesForImport; allowed != nil {
		for _, location := range *allowed {
			if !strings.ContainsAny(location.DomainName, "*?[") {
				names = append(names, location.DomainName)
			}
		}
	}
	return names
}

// prefixes parses networks, which the configuration has validated.
func prefixes(texts []string) []netip.Prefix {
	var networks []netip.Prefix
	for _, text := range texts {
		if network, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, network.Masked())
		}
	}
	return networks
}
