package agent

import (
	"context"
	"fmt"
	"sync"

	networkv1 "github.com/openshift/api/network/v1"
	networkinformers "github.com/openshift/client-go/network/informers/externalversions"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// networkObjects contains caches of the pod network's objects. If the agent does not use VXLAN, the
// caches are nil.
type networkObjects struct {
	subnets, networks cache.SharedIndexInformer
	changes           chan struct{} // receives a value after a change
}

// watchNetwork starts the caches, which run until ctx is done.
func (a *Agent) watchNetwork(ctx context.Context, tasks *sync.WaitGroup) (*networkObjects, error) {
	o := &networkObjects{changes: make(chan struct{}, 1)}
	if !a.usesVXLAN() {
		return o, nil
	}
	factory := networkinformers.NewSharedInformerFactory(a.Network, 0)
	o.subnets = factory.Network().V1().HostSubnets().Informer()
	o.networks = factory.Network().V1().ClusterNetworks().Informer()
	notify := func(object any) {
		if subnet, ok := object.(*networkv1.HostSubnet); ok && belongsToNode(subnet) {
			return
		}
		select {
		case o.changes <- struct{}{}:
		default: // a value is already pending
		}
	}
	for _, informer := range []cache.SharedIndexInformer{o.subnets, o.networks} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, UpdateFunc: func(_, object any) { notify(object) }, DeleteFunc: notify,
		})
		if err != nil {
			return nil, fmt.Errorf("watch pod network objects: %w", err)
		}
		tasks.Go(func() { informer.RunWithContext(ctx) })
	}
	tasks.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), o.subnets.HasSynced, o.networks.HasSynced) {
			notify(nil)
		}
	})
	return o, nil
}

// synced reports whether the caches have synced.
func (o *networkObjects) synced() bool {
	return o.subnets != nil && o.subnets.HasSynced() && o.networks.HasSynced()
}

// externalHosts returns the HostSubnets of hosts that are not nodes.
func (o *networkObjects) externalHosts() (hosts []*networkv1.HostSubnet) {
	for _, object := range o.subnets.GetStore().List() {
		if host := object.(*networkv1.HostSubnet); !belongsToNode(host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// vxlanPort returns the UDP port that the cluster uses for VXLAN.
func (o *networkObjects) vxlanPort() int {
	object, exists, err := o.networks.GetStore().GetByKey(networkv1.ClusterNetworkDefault)
	if err != nil || !exists {
		return networkplugin.VXLANPort
	}
	if port := object.(*networkv1.ClusterNetwork).VXLANPort; port != nil && *port != 0 {
		return int(*port)
	}
	return networkplugin.VXLANPort
}

// belongsToNode reports whether the HostSubnet belongs to a Node. If it does, the control plane
// manages it.
func belongsToNode(subnet *networkv1.HostSubnet) bool {
	return subnet.Annotations[networkv1.NodeUIDAnnotation] != ""
}
