// Package model turns the routes that a router has admitted into what its configuration is made of: backends with their servers. Names and
// fields are those that templates of OpenShift 3.11 use, so that a custom haproxy-config.template finds them.
package model

import (
	routev1 "github.com/openshift/api/route/v1"
)

// ServiceAliasConfigKey names a route as "namespace:name".
type ServiceAliasConfigKey string

// ServiceUnitKey names a service as "namespace/name".
type ServiceUnitKey string

// State is everything that a router serves. What an alias points to does not change: a route that is different from before has another one.
type State struct {
	Aliases      map[ServiceAliasConfigKey]*ServiceAliasConfig
	ServiceUnits map[ServiceUnitKey]ServiceUnit
	// PeerEndpoints are those of the router's own service.
	PeerEndpoints []Endpoint
}

// ServiceAliasConfig is a route.
type ServiceAliasConfig struct {
	Name, Namespace string
	Host, Path      string
	TLSTermination  routev1.TLSTerminationType
	// Certificates are PEM texts by host, by host+"_ca" and by host+"_pod".
	Certificates map[string]Certificate
	// VerifyServiceHostname asks for the service's name in the certificates of its pods.
	VerifyServiceHostname         bool
	InsecureEdgeTerminationPolicy routev1.InsecureEdgeTerminationPolicyType
	// RoutingKeyName is the default name of the cookie.
	RoutingKeyName string
	IsWildcard     bool
	Annotations    map[string]string
	// ServiceUnits are the weights of services as the route gives them, ServiceUnitNames those of each of a service's endpoints.
	ServiceUnits, ServiceUnitNames map[ServiceUnitKey]int32
	// ActiveServiceUnits counts services that get requests, ActiveEndpoints their endpoints.
	ActiveServiceUnits, ActiveEndpoints int
	// PreferPort is the name or number of the port that the route wants.
	PreferPort string
}

// Certificate is a certificate or a bundle of it and its key.
type Certificate struct{ ID, Contents, PrivateKey string }

// ServiceUnit is a service with its endpoints.
type ServiceUnit struct {
	Name, Hostname string
	EndpointTable  []Endpoint
	// ServiceAliasAssociations are the routes that use the service.
	ServiceAliasAssociations map[ServiceAliasConfigKey]bool
}

// Endpoint is a port of a pod.
type Endpoint struct {
	ID, IP, Port, TargetName, PortName string
	// IdHash is what cookies hold.
	IdHash        string
	NoHealthCheck bool
}
