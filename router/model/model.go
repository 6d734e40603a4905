// Package model converts the admitted routes of a router to the data of its configuration: backends
// with their servers. Names and fields are those of OpenShift 3.11, so that custom templates
// (haproxy-config.template) work.
package model

import (
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// ServiceAliasConfigKey names a route as "namespace:name".
type ServiceAliasConfigKey string

// ServiceUnitKey names a service as "namespace/name".
type ServiceUnitKey string

// Split returns the namespace and the name.
func (k ServiceUnitKey) Split() (namespace, name string) {
	namespace, name, _ = strings.Cut(string(k), "/")
	return namespace, name
}

// State is everything that a router serves. Aliases are immutable: a changed route gets a new one.
type State struct {
	Aliases      map[ServiceAliasConfigKey]*ServiceAliasConfig
	ServiceUnits map[ServiceUnitKey]ServiceUnit
	// PeerEndpoints are the endpoints of the router's own service.
	PeerEndpoints []Endpoint
}

// ServiceAliasConfig is a route.
type ServiceAliasConfig struct {
	Name, Namespace string
	Host, Path      string
	TLSTermination  routev1.TLSTerminationType
	// Certificates contains PEM data by host, host+"_ca" and host+"_pod".
	Certificates map[string]Certificate
	// VerifyServiceHostname requires the service's name in the certificates of its pods.
	VerifyServiceHostname         bool
	InsecureEdgeTerminationPolicy routev1.InsecureEdgeTerminationPolicyType
	// RoutingKeyName is the default name of the cookie.
	RoutingKeyName string
	IsWildcard     bool
	Annotations    map[string]string
	// ServiceUnits contains the weights of services in the route, ServiceUnitNames the weight of each
	// endpoint of a service.
	ServiceUnits, ServiceUnitNames map[ServiceUnitKey]int32
	// ActiveServiceUnits counts services that get requests, ActiveEndpoints their endpoints.
	ActiveServiceUnits, ActiveEndpoints int
	// PreferPort is the name or number of the route's port.
	PreferPort string
	// Share is the number of routes in the project, rounded up to a power of two. They share the
	// servers of the project.
	Share int
}

// A project has at most maxServers servers in all routes together, and each route at least
// minServers for each of its services. A server takes 7 KiB of HAProxy's memory.
const maxServers, minServers = 10_000, 10

// limit returns the maximum number of servers of each service in a route.
func (c *ServiceAliasConfig) limit() int {
	return max(minServers, maxServers/max(1, c.Share)/max(1, len(c.ServiceUnits)))
}

// ShortestCheck returns the shortest interval of health checks that a route may have. All such
// routes of a project together cause at most a thousand checks a second.
func (c *ServiceAliasConfig) ShortestCheck() time.Duration {
	return time.Duration(c.Share*roundUp(c.ActiveEndpoints)) * time.Millisecond
}

// roundUp returns the power of two that is not less than a number, so that small changes of the
// number change nothing.
func roundUp(number int) int {
	power := 1
	for power < number {
		power *= 2
	}
	return power
}

// Certificate is a certificate, or a bundle of a certificate and its key.
type Certificate struct{ ID, Contents, PrivateKey string }

// ServiceUnit is a service with its endpoints.
type ServiceUnit struct {
	Name, Hostname string
	EndpointTable  []Endpoint
	// ServiceAliasAssociations contains the routes that use the service.
	ServiceAliasAssociations map[ServiceAliasConfigKey]bool
}

// Endpoint is a port of a pod.
type Endpoint struct {
	ID, IP, Port, TargetName, PortName string
	// IdHash is the value in cookies.
	IdHash        string
	NoHealthCheck bool
}
