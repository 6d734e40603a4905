package agent

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// watchNodes returns an informer for all Nodes. It sends this node's IPv4 subnet to the subnets
// channel whenever the subnet changes. The channel must have capacity 1, because a new subnet
// replaces a subnet that has not been received yet. The peers channel receives a value after
// another node's subnet or address changes.
func (a *Agent) watchNodes(subnets chan netip.Prefix) (informer cache.SharedIndexInformer, peers <-chan struct{}, err error) {
	informer = coreinformers.NewNodeInformer(a.Client, 0, cache.Indexers{})
	if err := informer.SetTransform(trimNode); err != nil {
		return nil, nil, fmt.Errorf("watch nodes: %w", err)
	}
	changes := make(chan struct{}, 1)
	notify := func() {
		select {
		case changes <- struct{}{}:
		default: // a value is already pending
		}
	}
	var previous netip.Prefix // the informer calls handlers sequentially
	own := func(node *corev1.Node) {
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
	handle := func(object any) {
		if node, ok := object.(*corev1.Node); ok && node.Name == a.NodeName {
			own(node)
		} else {
			notify()
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    handle,
		DeleteFunc: func(any) { notify() },
		UpdateFunc: func(old, object any) {
			if a.peerOf(old) != a.peerOf(object) || object.(*corev1.Node).Name == a.NodeName {
				handle(object)
			}
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watch nodes: %w", err)
	}
	return informer, changes, nil
}

// trimNode removes fields that the agent does not use.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}, nil
}

// subnetOf returns the node's first IPv4 subnet. ok is false if the control plane has not assigned
// a subnet.
func subnetOf(node *corev1.Node) (subnet netip.Prefix, ok bool) {
	for _, cidr := range append(node.Spec.PodCIDRs, node.Spec.PodCIDR) {
		subnet, err := netip.ParsePrefix(cidr)
		if err == nil && subnet.Addr().Is4() {
			return subnet.Masked(), true
		}
	}
	return netip.Prefix{}, false
}
