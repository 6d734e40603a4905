package policy

import (
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// snapshot is the state of the cluster that decides which packets a node forwards.
type snapshot struct {
	namespaces map[string]labels.Set // labels by name
	requesters map[string]string     // users who requested the projects, by project
	pods       []pod                 // those with an address of the pod network
	policies   []*networkingv1.NetworkPolicy
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
