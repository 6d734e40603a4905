package policy

import (
	"net/netip"
	"slices"

	networkv1 "github.com/openshift/api/network/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// snapshot is the cluster state that determines which packets a node forwards. A pod with two
// addresses occurs twice.
type snapshot struct {
	family     ipfamily.Family       // IP family of all addresses; set by "of"
	namespaces map[string]labels.Set // labels by name
	requesters map[string]string     // users who requested the projects, by project
	pods       []pod                 // pods with an address of the pod network
	policies   []*networkingv1.NetworkPolicy

	plugin    string // the network plugin of the cluster
	firewalls []*networkv1.EgressNetworkPolicy
	netIDs    map[string]uint32       // network IDs of projects that have one
	hosts     []netip.Prefix          // addresses from which hosts send packets to pods
	names     map[string][]netip.Addr // addresses of the DNS names in firewalls
	platform  []netip.Addr            // addresses of services that firewalls never restrict
	// gateways maps the nodes' addresses that only the cluster uses to the nodes' other addresses.
	gateways map[netip.Addr][]netip.Addr

	node  string                   // name of this node
	exits map[string]egressip.Exit // paths out of the cluster, by project
}

// pod is a pod with an address in the pod network.
type pod struct {
	namespace string
	labels    labels.Set
	ports     map[portName]int32 // by name
	address   netip.Addr
	local     bool // runs on this node
	// unknown indicates whether the pod's labels are still missing from the cache.
	unknown bool
}

// of returns the snapshot with only the addresses in one IP family.
func (s snapshot) of(f ipfamily.Family) snapshot {
	s.family = f
	s.pods = slices.DeleteFunc(slices.Clone(s.pods), func(p pod) bool { return ipfamily.Of(p.address) != f })
	s.hosts = slices.DeleteFunc(slices.Clone(s.hosts), func(p netip.Prefix) bool { return ipfamily.Of(p.Addr()) != f })
	s.names, s.platform = namesIn(f, s.names), inFamily(f, s.platform)
	s.gateways = gatewaysIn(f, s.gateways)
	return s
}

// namesIn returns the DNS names' addresses in an IP family.
func namesIn(f ipfamily.Family, names map[string][]netip.Addr) map[string][]netip.Addr {
	result := map[string][]netip.Addr{}
	for name, addresses := range names {
		result[name] = inFamily(f, addresses)
	}
	return result
}

func inFamily(f ipfamily.Family, addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return ipfamily.Of(a) != f })
}

// byNamespace groups the pods by namespace.
func (s snapshot) byNamespace() map[string][]pod {
	result := map[string][]pod{}
	for _, p := range s.pods {
		result[p.namespace] = append(result[p.namespace], p)
	}
	return result
}
