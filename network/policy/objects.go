package policy

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	networkv1 "github.com/openshift/api/network/v1"
	projectv1 "github.com/openshift/api/project/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	networkinformers "github.com/openshift/client-go/network/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/cni"
)

// objects contains caches of the objects that policies depend on.
type objects struct {
	pods, namespaces, policies cache.SharedIndexInformer
	firewalls, netNamespaces   cache.SharedIndexInformer
	clusterNetworks            cache.SharedIndexInformer
	hostSubnets                cache.SharedIndexInformer
	services                   cache.SharedIndexInformer // services in platform namespaces

	factory  informers.SharedInformerFactory // for pods, namespaces and policies
	platform informers.SharedInformerFactory // for services
	network  networkinformers.SharedInformerFactory

	dualStack   dualstack.Networks
	podNetworks []netip.Prefix // in both IP families
	resolver    netip.Addr     // address of the node's DNS server
}

func newObjects(client kubernetes.Interface, network networkclient.Interface) *objects {
	o := &objects{
		factory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim)),
		platform: informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithTransform(trim), informers.WithNamespace(metav1.NamespaceDefault)),
		network: networkinformers.NewSharedInformerFactory(network, 0),
	}
	o.pods = o.factory.Core().V1().Pods().Informer()
	o.namespaces = o.factory.Core().V1().Namespaces().Informer()
	o.policies = o.factory.Networking().V1().NetworkPolicies().Informer()
	o.services = o.platform.Core().V1().Services().Informer()
	o.firewalls = o.network.Network().V1().EgressNetworkPolicies().Informer()
	o.netNamespaces = o.network.Network().V1().NetNamespaces().Informer()
	o.clusterNetworks = o.network.Network().V1().ClusterNetworks().Informer()
	o.hostSubnets = o.network.Network().V1().HostSubnets().Informer()
	return o
}

// start starts the caches, which run until ctx is done. It reports whether they have synced.
func (o *objects) start(ctx context.Context) bool {
	o.factory.StartWithContext(ctx)
	o.platform.StartWithContext(ctx)
	o.network.Start(ctx.Done())
	for _, informer := range o.all() {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return false
		}
	}
	return true
}

// stop waits until the caches have stopped. The context that was passed to start must be done.
func (o *objects) stop() {
	o.factory.Shutdown()
	o.platform.Shutdown()
	o.network.Shutdown()
}

func (o *objects) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		o.pods, o.namespaces, o.policies, o.firewalls, o.netNamespaces, o.clusterNetworks, o.hostSubnets, o.services,
	}
}

// plugin returns the cluster's network plugin. It returns "" if the cache does not contain the
// "default" ClusterNetwork, which the control plane creates.
func (o *objects) plugin() string {
	object, exists, err := o.clusterNetworks.GetStore().GetByKey(networkv1.ClusterNetworkDefault)
	if err != nil || !exists {
		return ""
	}
	return cmp.Or(object.(*networkv1.ClusterNetwork).PluginName, networkplugin.Default)
}

// awaitPlugin waits until the cache contains the network plugin or ctx is done. It reports whether
// the cache contains the plugin.
func (o *objects) awaitPlugin(ctx context.Context) bool {
	err := wait.PollUntilContextCancel(ctx, labelPoll, true, func(context.Context) (bool, error) { return o.plugin() != "", nil })
	return err == nil
}

// netID returns a project's network ID. exists is false until the control plane has assigned an ID.
func (o *objects) netID(project string) (id uint32, exists bool) {
	object, exists, err := o.netNamespaces.GetStore().GetByKey(project)
	if err != nil || !exists {
		return 0, false
	}
	namespace := object.(*networkv1.NetNamespace)
	return namespace.NetID, o.isCurrent(namespace)
}

// isCurrent reports whether a NetNamespace belongs to the project that now has its name, rather
// than to a deleted project with the same name.
func (o *objects) isCurrent(namespace *networkv1.NetNamespace) bool {
	project, exists, err := o.namespaces.GetStore().GetByKey(namespace.Name)
	return err != nil || !exists || networkplugin.BelongsTo(namespace.Annotations, project.(*corev1.Namespace).UID)
}

// hasPolicies reports whether the cluster has network policies or egress firewalls.
func (o *objects) hasPolicies() bool {
	return len(o.policies.GetStore().ListKeys()) > 0 || len(o.firewalls.GetStore().ListKeys()) > 0
}

// watch returns a channel that receives a value after changes.
func (o *objects) watch() (<-chan struct{}, error) {
	changes := make(chan struct{}, 1)
	notify := func() {
		select {
		case changes <- struct{}{}:
		default: // a value is already pending
		}
	}
	for _, informer := range o.all() {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() },
			UpdateFunc: func(old, new any) {
				if relevant(old, new) {
					notify()
				}
			},
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch objects: %w", err)
		}
	}
	return changes, nil
}

// relevant reports whether an update to an object can affect the rules. Most pod updates cannot,
// because they change only fields that the cache does not contain, such as conditions.
func relevant(old, new any) bool {
	before, isPod := old.(*cachedPod)
	return !isPod || !before.equals(new.(*cachedPod))
}

// trim removes fields that policies do not depend on, so that the caches stay small.
func trim(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		return cachePod(object), nil
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion, Labels: object.Labels,
			Annotations: map[string]string{projectv1.ProjectRequesterAnnotation: object.Annotations[projectv1.ProjectRequesterAnnotation]},
		}}, nil
	case *corev1.Service:
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion},
			Spec:       corev1.ServiceSpec{ClusterIPs: object.Spec.ClusterIPs},
		}, nil
	case *networkingv1.NetworkPolicy:
		object.ManagedFields, object.Annotations = nil, nil
	}
	return object, nil
}

// find returns a pod on this node, or nil if the cache does not contain it. For a static pod, the
// cache contains the mirror pod. The mirror pod has a different UID, and its annotation contains
// the static pod's UID.
func (o *objects) find(local cni.Pod) *cachedPod {
	existing, exists, err := o.pods.GetStore().GetByKey(local.Namespace + "/" + local.Name)
	if err != nil || !exists {
		return nil
	}
	p := existing.(*cachedPod)
	if string(p.UID) != local.UID && p.Annotations[corev1.MirrorPodAnnotationKey] != local.UID {
		return nil
	}
	return p
}

// snapshot returns the state of the cluster. It omits this node's pods that have no address.
func (o *objects) snapshot(node string, local []cni.Pod) snapshot {
	s := snapshot{namespaces: map[string]labels.Set{}, requesters: map[string]string{}, netIDs: map[string]uint32{}}
	for _, object := range o.namespaces.GetStore().List() {
		namespace := object.(*corev1.Namespace)
		s.namespaces[namespace.Name] = namespace.Labels
		s.requesters[namespace.Name] = namespace.Annotations[projectv1.ProjectRequesterAnnotation]
	}
	for _, object := range o.policies.GetStore().List() {
		s.policies = append(s.policies, object.(*networkingv1.NetworkPolicy))
	}
	o.addFirewalls(&s)
	s.hosts, s.gateways = o.hostAddresses(), o.gateways(node)
	unnamed := map[netip.Addr]bool{} // addresses of pods without a name
	for _, l := range local {
		if l.Name == "" {
			unnamed[l.Address] = true
			continue
		}
		entry := pod{namespace: l.Namespace, local: true, unknown: true}
		if p := o.find(l); p != nil {
			entry = p.describe(true)
		}
		s.pods = append(s.pods, entry.withAddresses(l.Addresses())...)
	}
	for _, object := range o.pods.GetStore().List() {
		p := object.(*cachedPod)
		isLocal := p.node == node && !p.hostNetwork && !p.ended
		if p.isRemote(node) || isLocal && unnamed[p.address] {
			s.pods = append(s.pods, p.describe(isLocal).withAddresses(p.addresses())...)
		}
	}
	return s
}

// addFirewalls adds the objects that egress firewalls depend on.
func (o *objects) addFirewalls(s *snapshot) {
	for _, object := range o.firewalls.GetStore().List() {
		s.firewalls = append(s.firewalls, object.(*networkv1.EgressNetworkPolicy))
	}
	for _, object := range o.netNamespaces.GetStore().List() {
		if namespace := object.(*networkv1.NetNamespace); o.isCurrent(namespace) {
			s.netIDs[namespace.Name] = namespace.NetID
		}
	}
	for _, object := range o.services.GetStore().List() {
		for _, text := range object.(*corev1.Service).Spec.ClusterIPs {
			if address, err := netip.ParseAddr(text); err == nil {
				s.platform = append(s.platform, address)
			}
		}
	}
}

// withAddresses returns a copy of the pod for each of its addresses.
func (p pod) withAddresses(addresses []netip.Addr) (pods []pod) {
	for _, address := range addresses {
		p.address = address
		pods = append(pods, p)
	}
	return pods
}
