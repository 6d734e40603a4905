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
)

// Source is where services are found. Service and Slices return nothing for a service that is not there.
type Source struct {
	Service func(namespace, name string) *corev1.Service
	Slices  func(namespace, name string) []*discoveryv1.EndpointSlice
	// Host tells whether an address is one of the router's own host, where users' Endpoints may not lead. Without it, the
	// router reaches every endpoint.
	Host func(netip.Addr) bool
}

// idled are the annotations of a service whose pods were taken away until somebody asks for them.
var idled = []string{"idling.alpha.openshift.io/idled-at", "idling.openshift.io/idled-at"}

// maxWeight is HAProxy's greatest weight of a server.
const maxWeight = 256

// alias is a route as it is without its endpoints.
func alias(route *routev1.Route) *ServiceAliasConfig {
	spec := &route.Spec
	config := &ServiceAliasConfig{
		Name: route.Name, Namespace: route.Namespace, Host: spec.Host, Path: spec.Path, Annotations: route.Annotations,
		IsWildcard:   spec.WildcardPolicy == routev1.WildcardPolicySubdomain,
		ServiceUnits: map[ServiceUnitKey]int32{}, Certificates: map[string]Certificate{},
	}
	sum := md5.Sum([]byte(route.Namespace + ":" + route.Name)) // a name, no secret
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

// Endpoints are those of a service that are ready.
func (s Source) Endpoints(namespace, name string) []Endpoint {
	return s.unit(ServiceUnitKey(namespace + "/" + name)).EndpointTable
}

// unit is a service with all of its endpoints that are ready.
func (s Source) unit(key ServiceUnitKey) ServiceUnit {
	namespace, name, _ := strings.Cut(string(key), "/")
	unit := ServiceUnit{
		Name: string(key), Hostname: name + "." + namespace + ".svc", ServiceAliasAssociations: map[ServiceAliasConfigKey]bool{},
	}
	for _, slice := range s.Slices(namespace, name) {
		if slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for i := range slice.Endpoints {
			unit.EndpointTable = append(unit.EndpointTable, s.endpoints(slice, &slice.Endpoints[i])...)
		}
	}
	if len(unit.EndpointTable) == 0 {
		unit.EndpointTable = idling(s.Service(namespace, name))
	}
	slices.SortFunc(unit.EndpointTable, func(a, b Endpoint) int { return strings.Compare(a.ID, b.ID) })
	unit.EndpointTable = slices.CompactFunc(unit.EndpointTable, func(a, b Endpoint) bool { return a.ID == b.ID })
	return unit
}

// endpoints are the ports of an endpoint, which whoever edits Endpoints may have written: its texts go into the configuration of HAProxy.
func (s Source) endpoints(slice *discoveryv1.EndpointSlice, found *discoveryv1.Endpoint) (ports []Endpoint) {
	if ready := found.Conditions.Ready; ready != nil && !*ready || len(found.Addresses) == 0 {
		return nil
	}
	target := found.Addresses[0]
	address, err := netip.ParseAddr(target)
	if err != nil || s.Host != nil && !rules.Reachable(slice, address, s.Host) {
		return nil
	}
	if ref := found.TargetRef; ref != nil && len(validation.IsDNS1123Subdomain(ref.Name)) == 0 { // the API server takes any text
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
		ports = append(ports, endpoint(found.Addresses[0], *port.Port, target, name))
	}
	return ports
}

func endpoint(ip string, port int32, target, portName string) Endpoint {
	made := Endpoint{IP: ip, Port: strconv.Itoa(int(port)), TargetName: target, PortName: portName}
	made.ID = fmt.Sprintf("ept:%s:%s:%s", target, ip, made.Port)
	sum := md5.Sum([]byte(ip + ":" + made.Port)) // a name, no secret
	made.IdHash = hex.EncodeToString(sum[:])
	return made
}

// idling are the addresses of a service without pods that has been idled: its own, behind which the first connection waits for a pod.
func idling(service *corev1.Service) (table []Endpoint) {
	if service == nil || service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone ||
		!slices.ContainsFunc(idled, func(name string) bool { return service.Annotations[name] != "" }) {
		return nil
	}
	for _, port := range service.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			made := endpoint(service.Spec.ClusterIP, port.Port, service.Name, port.Name)
			made.NoHealthCheck = true
			table = append(table, made)
		}
	}
	return table
}

// EndpointsOf are the endpoints of a service for a route: those of the port that it names, by name or number, or those of the first port of each
// pod. A service of which nothing is as the route wants it has none.
func EndpointsOf(config *ServiceAliasConfig, unit ServiceUnit) []Endpoint {
	var chosen []Endpoint
	seen := map[string]bool{}
	for _, endpoint := range unit.EndpointTable {
		switch {
		case config.PreferPort != "" && config.PreferPort != endpoint.PortName && config.PreferPort != endpoint.Port:
		case config.PreferPort == "" && seen[endpoint.IP]:
		default:
			seen[endpoint.IP] = true
			chosen = append(chosen, endpoint)
		}
	}
	return chosen
}

// weigh shares each service's weight among its endpoints, each of which gets at least 1, in the greatest numbers that HAProxy has, so that the shares
// are as exact as they can be.
func (s *State) weigh(config *ServiceAliasConfig) {
	config.ServiceUnitNames, config.ActiveServiceUnits, config.ActiveEndpoints = map[ServiceUnitKey]int32{}, 0, 0
	each, most := map[ServiceUnitKey]float64{}, 0.0
	for unit, weight := range config.ServiceUnits {
		count := len(EndpointsOf(config, s.ServiceUnits[unit]))
		if count == 0 || weight == 0 {
			config.ServiceUnitNames[unit] = 0
			continue
		}
		config.ActiveServiceUnits++
		config.ActiveEndpoints += count
		each[unit] = float64(weight) / float64(count)
		most = max(most, each[unit])
	}
	for unit, share := range each {
		config.ServiceUnitNames[unit] = max(1, int32(math.Round(share/most*maxWeight)))
	}
}
