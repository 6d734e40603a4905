package model

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	rules "github.com/slipway-platform/slipway/internal/endpoints"
	"github.com/slipway-platform/slipway/internal/idling"
)

// Source provides services. For a missing service, Service returns nil and Slices returns no
// slices.
type Source struct {
	Service func(namespace, name string) *corev1.Service
	Slices  func(namespace, name string) []*discoveryv1.EndpointSlice
	// Host reports whether an address belongs to the router's host. The router ignores endpoints
	// that users create with one of these addresses. If Host is nil, all endpoints are allowed.
	Host func(netip.Addr) bool
}

// maxWeight is the maximum weight of a server in HAProxy.
const maxWeight = 256

// alias converts a route to a ServiceAliasConfig without endpoints.
func alias(route *routev1.Route) *ServiceAliasConfig {
	spec := &route.Spec
	config := &ServiceAliasConfig{
		Name: route.Name, Namespace: route.Namespace, Host: spec.Host, Path: spec.Path, Annotations: route.Annotations,
		IsWildcard:   spec.WildcardPolicy == routev1.WildcardPolicySubdomain,
		ServiceUnits: map[ServiceUnitKey]int32{}, Certificates: map[string]Certificate{},
	}
	sum := md5.Sum([]byte(route.Namespace + ":" + route.Name)) // the hash is only a name
	config.RoutingKeyName = hex.EncodeToString(sum[:])
	if spec.Port != nil {
		config.PreferPort = spec.Port.TargetPort.String()
	}
	for _, target := range append([]routev1.RouteTargetReference{spec.To}, spec.AlternateBackends...) {
		weight := int32(1)
		if target.Weight != nil {
			weight = *target.Weight
		}
		config.ServiceUnits[ServiceUnitKey(route.Namespace+"/"+target.Name)] += weight
	}
	tls := spec.TLS
	if tls == nil {
		return config
	}
	config.TLSTermination, config.InsecureEdgeTerminationPolicy = tls.Termination, tls.InsecureEdgeTerminationPolicy
	for suffix, certificate := range map[string]Certificate{
		"": {Contents: tls.Certificate, PrivateKey: tls.Key}, "_ca": {Contents: tls.CACertificate}, "_pod": {Contents: tls.DestinationCACertificate},
	} {
		if certificate.Contents != "" {
			certificate.ID = spec.Host + suffix
			config.Certificates[spec.Host+suffix] = certificate
		}
	}
	config.VerifyServiceHostname = tls.Termination == routev1.TLSTerminationReencrypt && tls.DestinationCACertificate == ""
	return config
}

// Endpoints returns a service's ready endpoints.
func (s Source) Endpoints(namespace, name string) []Endpoint {
	return s.unit(ServiceUnitKey(namespace + "/" + name)).EndpointTable
}

// unit returns a service with its ready endpoints.
func (s Source) unit(key ServiceUnitKey) ServiceUnit {
	namespace, name := key.Split()
	unit := ServiceUnit{
		Name: string(key), Hostname: name + "." + namespace + ".svc", ServiceAliasAssociations: map[ServiceAliasConfigKey]bool{},
	}
	all := s.Slices(namespace, name)
	hasIPv4 := slices.ContainsFunc(all, func(slice *discoveryv1.EndpointSlice) bool {
		return slice.AddressType == discoveryv1.AddressTypeIPv4 && len(slice.Endpoints) > 0
	})
	for _, slice := range all {
		// If the service has IPv4 endpoints, ignore its IPv6 endpoints. A pod that has an IPv4 and
		// an IPv6 address must count as only one server.
		if slice.AddressType == discoveryv1.AddressTypeFQDN || hasIPv4 && slice.AddressType == discoveryv1.AddressTypeIPv6 {
			continue
		}
		for i := range slice.Endpoints {
			unit.EndpointTable = append(unit.EndpointTable, s.endpoints(slice, &slice.Endpoints[i])...)
		}
	}
	if len(unit.EndpointTable) == 0 {
		unit.EndpointTable = idleEndpoints(s.Service(namespace, name))
	}
	slices.SortFunc(unit.EndpointTable, func(a, b Endpoint) int { return strings.Compare(a.ID, b.ID) })
	unit.EndpointTable = slices.CompactFunc(unit.EndpointTable, func(a, b Endpoint) bool { return a.ID == b.ID })
	return unit
}

// endpoints returns one Endpoint for each port of an endpoint. It validates the values, because
// users can edit Endpoints and the values become part of HAProxy's configuration.
func (s Source) endpoints(slice *discoveryv1.EndpointSlice,
	source *discoveryv1.Endpoint) (ports []Endpoint) {
	if ready := source.Conditions.Ready; ready != nil && !*ready || len(source.Addresses) == 0 {
		return nil
	}
	target := source.Addresses[0]
	address, err := netip.ParseAddr(target)
	if err != nil || s.Host != nil && !rules.Reachable(slice, address, s.Host) {
		return nil
	}
	// The API server accepts any text as the name in a targetRef.
	if ref := source.TargetRef; ref != nil && len(validation.IsDNS1123Subdomain(ref.Name)) == 0 {
		target = ref.Name
	}
	for _, port := range slice.Ports {
		if port.Port == nil || port.Protocol != nil && *port.Protocol != corev1.ProtocolTCP {
			continue
		}
		name := ""
		if port.Name != nil {
			name = *port.Name
		}
		if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
			continue
		}
		ports = append(ports, endpoint(source.Addresses[0], *port.Port, target, name))
	}
	return ports
}

func endpoint(ip string, port int32, target, portName string) Endpoint {
	e := Endpoint{IP: ip, Port: strconv.Itoa(int(port)), TargetName: target, PortName: portName}
	e.ID = fmt.Sprintf("ept:%s:%s:%s", target, ip, e.Port)
	sum := md5.Sum([]byte(ip + ":" + e.Port)) // the hash is only a name
	e.IdHash = hex.EncodeToString(sum[:])
	return e
}

// idleEndpoints returns the cluster IP addresses of an idle service. The first connection to one of
// these addresses waits until a pod is ready.
func idleEndpoints(service *corev1.Service) (table []Endpoint) {
	if service == nil || service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone ||
		!idling.Marked(service.Annotations) {
		return nil
	}
	for _, port := range service.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			e := endpoint(service.Spec.ClusterIP, port.Port, service.Name, port.Name)
			e.NoHealthCheck = true
			table = append(table, e)
		}
	}
	return table
}

// EndpointsOf returns a service's endpoints for a route. These are the endpoints with the route's
// port, by name or number, or the first port of each pod if the route specifies no port. The number
// of endpoints is limited to the maximum for the route.
func EndpointsOf(config *ServiceAliasConfig, unit ServiceUnit) []Endpoint {
	var endpoints []Endpoint
	seen := map[string]bool{}
	for _, endpoint := range unit.EndpointTable {
		if len(endpoints) == config.limit() {
			break
		}
		switch {
		case config.PreferPort != "" && config.PreferPort != endpoint.PortName && config.PreferPort != endpoint.Port:
		case config.PreferPort == "" && seen[endpoint.IP]:
		default:
			seen[endpoint.IP] = true
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints
}

// weigh distributes each service's weight among the service's endpoints. Each endpoint has a weight
// of at least 1. The weights use HAProxy's full range, so that the proportions are as exact as
// possible.
func (s *State) weigh(config *ServiceAliasConfig) {
	config.ServiceUnitNames, config.ActiveServiceUnits, config.ActiveEndpoints = map[ServiceUnitKey]int32{}, 0, 0
	each, maximum := map[ServiceUnitKey]float64{}, 0.0
	for unit, weight := range config.ServiceUnits {
		count := len(EndpointsOf(config, s.ServiceUnits[unit]))
		if count == 0 || weight == 0 {
			config.ServiceUnitNames[unit] = 0
			continue
		}
		config.ActiveServiceUnits++
		config.ActiveEndpoints += count
		each[unit] = float64(weight) / float64(count)
		maximum = max(maximum, each[unit])
	}
	for unit, share := range each {
		config.ServiceUnitNames[unit] = max(1, int32(math.Round(share/maximum*maxWeight)))
	}
}
