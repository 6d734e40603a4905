package policy

import (
	"net/netip"

	networkv1 "github.com/openshift/api/network/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/network/egressip"
)

// snapshot is the state of the cluster that decides which packets a node forwards.
type snapshot struct {
	namespaces map[string]labels.Set // labels by name
	requesters map[string]string     // users who requested the projects, by project
	pods       []pod                 // those with an address of the pod network
	policies   []*networkingv1.NetworkPolicy

	plugin    string // the network plug-in of the cluster
	firewalls []*networkv1.EgressNetworkPolicy
	netIDs    map[string]uint32       // network IDs of projects that have one
	hosts     []netip.Prefix          // addresses in the pod network that belong to hosts
	names     map[string][]netip.Addr // addresses of the DNS names in firewalls
	platform  []netip.Addr            // addresses of services that firewalls never restrict

	node  string                   // name of this node
	exits map[string]egressip.Exit // ways to the outside, by project
}

// pod is a pod with an address of the pod network.
type pod struct {
	namespace string
	labels    labels.Set
	ports     map[portName]int32 // by name
	address   netip.Addr
	local     bool // runs on this node
	// unknown means that the pod's labels are not known yet.
	unknown bool
}

// byNamespace returns the pods of each namespace.
func (s snapshot) byNamespace() map[string][]pod {
	result := map[string][]pod{}
	for _, p := range s.pods {
		result[p.namespace] = append(result[p.namespace], p)
	}
	return result
}
