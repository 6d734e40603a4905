package agent

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// watchNode returns an informer of the Node, which sends the node's IPv4 subnet each time it
// changes. The channel must have capacity 1; a new subnet replaces one that was not received yet.
func (a *Agent) watchNode(subnets chan netip.Prefix) (cache.SharedIndexInformer, error) {
	informer := coreinformers.NewFilteredNodeInformer(a.Client, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, a.NodeName).String()
	})
	var previous netip.Prefix // the informer calls handlers sequentially
	handle := func(object any) {
		node, ok := object.(*corev1.Node)
		if !ok || node.Name != a.NodeName {
			return
		}
		subnet, ok := subnetOf(node)
		if !ok || subnet == previous {
			return
		}
		previous = subnet
		select {
		case <-subnets:
		default:
		}
		subnets <- subnet
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		UpdateFunc: func(_, object any) { handle(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch node %q: %w", a.NodeName, err)
	}
	return informer, nil
}

// subnetOf returns the node's first IPv4 subnet. ok is false if the control plane has not assigned
// one.
func subnetOf(node *corev1.Node) (subnet netip.Prefix, ok bool) {
	for _, cidr := range append(node.Spec.PodCIDRs, node.Spec.PodCIDR) {
		subnet, err := netip.ParsePrefix(cidr)
		if err == nil && subnet.Addr().Is4() {
			return subnet.Masked(), true
		}
	}
	return netip.Prefix{}, false
}
