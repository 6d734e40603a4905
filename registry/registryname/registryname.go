// Package registryname defines the host names of the cluster's image registry: the names of its
// service and its route, and the configured names.
package registryname

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// Names that identify the registry's service.
const (
	Namespace = "default"
	Service   = "docker-registry"
	Port      = "5000"
	// Host is the service's DNS name. Address is the same name with the port. Nodes, image streams
	// and builds use Address.
	Host    = Service + "." + Namespace + ".svc"
	Address = Host + ":" + Port
)

// Names contains the settings that determine the registry's names.
type Names struct {
	// Internal and External are the configured names, with ports. Both are optional.
	Internal, External string
	// RouteDomain is the default subdomain of routes (routingConfig.subdomain).
	RouteDomain string
	// ClusterDomain is the DNS domain of services.
	ClusterDomain string
}

// Stream returns the host, with port, in the image references of streams.
func (n Names) Stream() string { return cmp.Or(n.Internal, Address) }

// Route returns the host of the registry's route.
func (n Names) Route() string { return Service + "-" + Namespace + "." + n.RouteDomain }

// Public returns the registry's name for clients outside the cluster: the configured external name,
// or the route's host. It returns "" if there is no external name and the route's host is in the
// DNS domain of services, which other machines cannot resolve.
func (n Names) Public() string {
	if n.External != "" || strings.HasSuffix(n.Route(), ".svc."+n.ClusterDomain) {
		return n.External
	}
	return n.Route()
}

// Aliases returns all names except the service's name. Configured names include their ports.
func (n Names) Aliases() []string {
	return slices.DeleteFunc([]string{n.Internal, n.External, n.Route()}, func(name string) bool { return name == "" })
}

// All returns all names, including the service's name.
func (n Names) All() []string { return append(n.Aliases(), Address) }

// Hosts returns the aliases without ports, for the registry's certificate.
func (n Names) Hosts() []string {
	var hosts []string
	for _, name := range n.Aliases() {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		hosts = append(hosts, name)
	}
	return hosts
}

// ServiceHosts returns the service's DNS names.
func ServiceHosts(clusterDomain string) []string {
	return []string{Host, Host + "." + clusterDomain, Service, Service + "." + Namespace}
}
