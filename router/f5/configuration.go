package f5

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/router/model"
)

// configuration contains the objects that the appliance must contain. The keys of its maps are
// names without the partition.
type configuration struct {
	pools map[string]pool
	// insecure and secure contain the rules of the two policies.
	insecure, secure map[string]rule
	// passthrough maps hosts to the full paths of their pools. The key for a wildcard is
	// "*.domain".
	passthrough map[string]string
	// certificates and keys contain PEM data. The data for a name never changes, because the name
	// depends on the content.
	certificates, keys map[string]string
	clients            map[string]clientProfile
	servers            map[string]serverProfile
}

// pool is a load balancing pool of endpoints.
type pool struct {
	mode, monitor string
	members       map[string]member // members by name
}

// member is an endpoint in a pool. The member's name is address:port.
type member struct {
	address string
	ratio   int
}

// builder builds the appliance configuration for a router's state.
type builder struct {
	configuration
	partition string
	state     *model.State
	serviceCA string
}

// build returns the configuration for admitted routes. services contains the endpoints of all
// services, which have their own pools. serviceCA contains the service CA certificates in PEM
// format, or is empty.
func build(partition, serviceCA string, state *model.State, services map[model.ServiceUnitKey][]model.Endpoint) *configuration {
	b := &builder{partition: partition, state: state, serviceCA: serviceCA, configuration: configuration{
		pools: map[string]pool{}, insecure: map[string]rule{}, secure: map[string]rule{}, passthrough: map[string]string{},
		certificates: map[string]string{}, keys: map[string]string{},
		clients: map[string]clientProfile{}, servers: map[string]serverProfile{},
	}}
	for key, endpoints := range services {
		unit := model.ServiceUnit{EndpointTable: endpoints}
		if members := membersOf(model.EndpointsOf(&model.ServiceAliasConfig{}, unit), 1); len(members) > 0 {
			b.pools[poolName(key, "")] = pool{mode: roundRobin, members: members}
		}
	}
	// Routes with the same host share the profiles of the route with the shortest path, so process
	// routes with short paths first.
	keys := slices.SortedFunc(maps.Keys(state.Aliases), func(x, y model.ServiceAliasConfigKey) int {
		return cmp.Or(cmp.Compare(len(state.Aliases[x].Path), len(state.Aliases[y].Path)), cmp.Compare(x, y))
	})
	for _, key := range keys {
		b.add(state.Aliases[key])
	}
	b.excludeFromWildcards()
	return &b.configuration
}

const (
	// roundRobin and ratio are load balancing modes.
	roundRobin, ratio = "round-robin", "ratio-member"
	// monitor is the health monitor for route pools, whose pods serve HTTP or HTTPS.
	monitor = "min 1 of /Common/http /Common/https"
)

// add adds the objects for a route.
func (b *builder) add(alias *model.ServiceAliasConfig) {
	name, pool := routeName(alias), b.partition+"/"+b.pool(alias)
	insecure := alias.InsecureEdgeTerminationPolicy
	switch alias.TLSTermination {
	case "":
		b.insecure[name] = forward(alias, pool, "")
		return
	case routev1.TLSTerminationEdge:
		b.secure[name] = forward(alias, pool, disable)
		b.clientProfile(alias)
		if insecure == routev1.InsecureEdgeTerminationPolicyAllow {
			b.insecure[name] = forward(alias, pool, "")
		}
	case routev1.TLSTerminationReencrypt:
		if !b.serverProfile(alias) {
			return
		}
		b.secure[name] = forward(alias, pool, enable)
		b.clientProfile(alias)
	case routev1.TLSTerminationPassthrough:
		b.passthrough[serverName(alias)] = pool
	}
	if insecure == routev1.InsecureEdgeTerminationPolicyRedirect {
		b.insecure[name] = redirect(alias)
	}
}

// pool adds a route's pool and returns the pool's name. A route to one service uses the service's
// pool. A route to several services has its own pool, whose ratios follow the service weights.
func (b *builder) pool(alias *model.ServiceAliasConfig) string {
	var active []model.ServiceUnitKey
	for unit, weight := range alias.ServiceUnits {
		if weight > 0 {
			active = append(active, unit)
		}
	}
	if len(active) == 1 {
		name := poolName(active[0], alias.PreferPort)
		endpoints := model.EndpointsOf(alias, b.state.ServiceUnits[active[0]])
		b.pools[name] = pool{mode: roundRobin, monitor: monitor, members: membersOf(endpoints, 1)}
		return name
	}
	name, members := "openshift_"+alias.Namespace+"_"+alias.Name+".weighted", map[string]member{}
	for _, unit := range active {
		maps.Copy(members, membersOf(model.EndpointsOf(alias, b.state.ServiceUnits[unit]), ratioOf(alias.ServiceUnitNames[unit])))
	}
	b.pools[name] = pool{mode: ratio, monitor: monitor, members: members}
	return name
}

// ratioOf converts a weight in the model (0 to 256) to a ratio (1 to 100).
func ratioOf(weight int32) int { return max(1, int(weight)*100/256) }

// poolName returns the name of the pool for a service and the route's port.
func poolName(service model.ServiceUnitKey, port string) string {
	name := "openshift_" + strings.ReplaceAll(string(service), "/", "_")
	if port != "" {
		name += "_" + port
	}
	return name
}

// routeName returns the name of the rules for a route.
func routeName(alias *model.ServiceAliasConfig) string {
	return "openshift_route_" + alias.Namespace + "_" + alias.Name
}

// membersOf returns the pool members for endpoints. It excludes the address of an idle service,
// because the appliance cannot reach service addresses.
func membersOf(endpoints []model.Endpoint, ratio int) map[string]member {
	members := map[string]member{}
	for _, endpoint := range endpoints {
		address, err := netip.ParseAddr(endpoint.IP)
		if err != nil || endpoint.NoHealthCheck {
			continue
		}
		name := net.JoinHostPort(endpoint.IP, endpoint.Port)
		if address.Is6() {
			name = endpoint.IP + "." + endpoint.Port
		}
		members[name] = member{endpoint.IP, ratio}
	}
	return members
}

// serverName returns a route's host, or "*.domain" for a wildcard.
func serverName(alias *model.ServiceAliasConfig) string {
	if !alias.IsWildcard {
		return alias.Host
	}
	return "*" + suffix(alias.Host)
}

// suffix returns a host name without its first label, including the leading dot.
func suffix(host string) string {
	_, domain, _ := strings.Cut(host, ".")
	return "." + domain
}
