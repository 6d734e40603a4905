// Package model converts a router's admitted routes to the data from which its configuration is
// generated: backends and their servers. Names and fields are the same as in OpenShift 3.11, so
// that custom templates (haproxy-config.template) work.
package model

import (
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// ServiceAliasConfigKey identifies a route as "namespace:name".
type ServiceAliasConfigKey string

// ServiceUnitKey identifies a service as "namespace/name".
type ServiceUnitKey string

// Split returns the namespace and the name.
func (k ServiceUnitKey) Split() (namespace, name string) {
	namespace, name, _ = strings.Cut(string(k), "/")
	return namespace, name
}

// State describes everything that a router serves. Aliases are immutable: when a route changes, its
// alias is replaced.
type State struct {
	Aliases      map[ServiceAliasConfigKey]*ServiceAliasConfig
	ServiceUnits map[ServiceUnitKey]ServiceUnit
	// PeerEndpoints contains the endpoints of the router's own service.
	PeerEndpoints []Endpoint
}

// ServiceAliasConfig is a route with the weights of its services.
type ServiceAliasConfig struct {
	Name, Namespace string
	Host, Path      string
	TLSTermination  routev1.TLSTerminationType
	// Certificates contains PEM data, keyed by host, host+"_ca" and host+"_pod".
	Certificates map[string]Certificate
	// VerifyServiceHostname indicates whether the pods' certificates must contain the service's host
	// name.
	VerifyServiceHostname         bool
	InsecureEdgeTerminationPolicy routev1.InsecureEdgeTerminationPolicyType
	// RoutingKeyName is the cookie's default name.
	RoutingKeyName string
	IsWildcard     bool
	Annotations    map[string]string
	// ServiceUnits contains the weight of each service in the route. ServiceUnitNames contains the
	// weight of each endpoint of a service.
	ServiceUnits, ServiceUnitNames map[ServiceUnitKey]int32
	// ActiveServiceUnits is the number of services that receive requests. ActiveEndpoints is the
	// number of their endpoints.
	ActiveServiceUnits, ActiveEndpoints int
	// PreferPort is the route's port, as a name or number.
	PreferPort string
	// Share is the number of routes in the project, rounded up to a power of two. These routes
	// share the project's limit on servers.
	Share int
}

// maxServers is the maximum number of servers in all routes of a project together. minServers is
// the minimum number of servers that a route can have for each of its services. A server uses 7 KiB
// of HAProxy's memory.
const maxServers, minServers = 10_000, 10

// limit returns the maximum number of servers for each service in a route.
func (c *ServiceAliasConfig) limit() int {
	return max(minServers, maxServers/max(1, c.Share)/max(1, len(c.ServiceUnits)))
}

// ShortestCheck returns the minimum health check interval for a route. With this interval, all
// routes of a project together cause at most 1000 checks per second.
func (c *ServiceAliasConfig) ShortestCheck() time.Duration {
	return time.Duration(c.Share*roundUp(c.ActiveEndpoints)) * time.Millisecond
}

// roundUp returns the smallest power of two that is not less than a number. Small changes to the
// number usually do not change the result.
func roundUp(number int) int {
	power := 1
	for power < number {
		power *= 2
	}
	return power
}

// Certificate is a certificate, or a bundle that contains a certificate and its key.
type Certificate struct{ ID, Contents, PrivateKey string }

// ServiceUnit is a service with its endpoints.
type ServiceUnit struct {
	Name, Hostname string
	EndpointTable  []Endpoint
	// ServiceAliasAssociations contains the routes that use the service.
	ServiceAliasAssociations map[ServiceAliasConfigKey]bool
}

// Endpoint is a port on a pod.
type Endpoint struct {
	ID, IP, Port, TargetName, PortName string
	// IdHash identifies the server in cookies.
	IdHash        string
	NoHealthCheck bool
}
