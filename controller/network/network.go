// Package network maintains the objects of the pod network (network.openshift.io). These are the
// "default" ClusterNetwork with the configured settings, a HostSubnet for each node, and a
// NetNamespace with a network ID for each project. It also allocates node subnets and stores them
// in spec.podCIDR of Nodes. If pods have IPv6 addresses, spec.podCIDRs of a new Node also contains
// its IPv6 subnet. Components do not depend on this field: they derive the subnet (package
// dualstack).
//
// Administrators change a project's network with an annotation on its NetNamespace, which `oc adm
// pod-network` sets. The nodes enforce the result (see package network/policy).
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Managing Networking; OpenShift
// Container Platform 3.9 Architecture, OpenShift SDN. Subnets and IDs are allocated in the same
// order as in OpenShift 3.11.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	networkv1 "github.com/openshift/api/network/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	networkinformers "github.com/openshift/client-go/network/informers/externalversions"
	networklisters "github.com/openshift/client-go/network/listers/network/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/internal/nodeaddress"
)

// Controllers is the component that maintains the pod network objects. Only one instance may run in
// a cluster at a time.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Client changes the pod network objects.
	Client networkclient.Interface
	// Network is the content of the "default" ClusterNetwork.
	Network networkv1.ClusterNetwork
	// DualStack contains the pod networks, in the order in which nodes get subnets.
	DualStack dualstack.Networks

	hosts networklisters.HostSubnetLister

	mu    sync.Mutex
	note  func(text string)
	ready bool
	// compared means that problem is valid.
	compared bool
	problem  string // why the configured networks are rejected, or ""
}

// Notes sets the function that reports why the configured networks are rejected.
func (c *Controllers) Notes(note func(text string)) { c.note = note }

// report sets the problem. It adds no note before the component is ready.
func (c *Controllers) report(problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if problem != "" && problem != c.problem {
		slog.Error("rejected the pod networks in the configuration", "error", problem)
	}
	c.compared, c.problem = true, problem
	if c.note != nil && c.ready {
		c.note(problem)
	}
}

// rejected returns the reason why the configured networks are not in force, or "".
func (c *Controllers) rejected() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.compared {
		return "the configured networks have not been compared with the cluster's networks yet"
	}
	return c.problem
}

// begin marks the component as ready.
func (c *Controllers) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = true
	if c.note != nil {
		c.note(c.problem)
	}
}

// Name returns the component's name.
func (*Controllers) Name() string { return "pod-network" }

// Run maintains the objects until ctx is done.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	factory := networkinformers.NewSharedInformerFactory(c.Client, 0)
	objects := factory.Network().V1()
	c.hosts = objects.HostSubnets().Lister()
	nodes, namespaces := c.Deps.Informers.Core().V1().Nodes(), c.Deps.Informers.Core().V1().Namespaces()
	hosts := &hostSubnets{
		kube: c.Deps.Kube, client: c.Client.NetworkV1().HostSubnets(), nodes: nodes.Lister(), networks: c.DualStack, rejected: c.rejected,
	}
	ids := &netIDs{
		client: c.Client.NetworkV1().NetNamespaces(), cached: objects.NetNamespaces().Lister(),
		kube: c.Deps.Kube.CoreV1().Namespaces(), namespaces: namespaces.Lister(),
		multitenant: c.Network.PluginName == networkplugin.Multitenant,
	}
	manager := controller.Manager{
		{Name: "cluster network", Workers: 1, Reconcile: c.reconcileNetwork, Watches: []controller.Watch{
			{Informer: objects.ClusterNetworks().Informer()},
			// Every cluster has this namespace, so its event causes the ClusterNetwork to be
			// created.
			{Informer: namespaces.Informer(), Keys: onlyDefault},
			// The removal of a host can make rejected networks acceptable.
			{Informer: objects.HostSubnets().Informer(), Keys: always, Changed: subnetChanged},
		}},
		// Use one worker each, because allocations are not locked.
		{Name: "host subnets", Workers: 1, Reconcile: hosts.reconcile, Watches: []controller.Watch{
			{Informer: nodes.Informer(), Changed: nodeChanged}, {Informer: objects.HostSubnets().Informer()},
		}},
		{Name: "network IDs", Workers: 1, Reconcile: ids.reconcile, Watches: []controller.Watch{
			{Informer: namespaces.Informer(), Changed: func(any, any) bool { return false }}, {Informer: objects.NetNamespaces().Informer()},
		}},
	}
	c.Deps.Start()
	defer controller.Start(ctx, factory)()
	return manager.Run(ctx, func() { ready(); c.begin() })
}

// onlyDefault returns the key of the "default" ClusterNetwork if the object is the "default"
// namespace.
func onlyDefault(object any) []controller.Key {
	if namespace, ok := object.(*corev1.Namespace); ok && namespace.Name == metav1.NamespaceDefault {
		return []controller.Key{{Name: networkv1.ClusterNetworkDefault}}
	}
	return nil
}

// always returns the key of the "default" ClusterNetwork.
func always(any) []controller.Key { return []controller.Key{{Name: networkv1.ClusterNetworkDefault}} }

func subnetChanged(old, new any) bool {
	return old.(*networkv1.HostSubnet).Subnet != new.(*networkv1.HostSubnet).Subnet
}

// nodeChanged reports whether a Node change can require a HostSubnet change. Most changes are
// status updates, which occur every few seconds and require none.
func nodeChanged(old, new any) bool {
	before, after := old.(*corev1.Node), new.(*corev1.Node)
	return before.Spec.PodCIDR != after.Spec.PodCIDR || before.UID != after.UID || addressOf(before) != addressOf(after) ||
		nodeaddress.Internal(before, netip.Addr.Is6) != nodeaddress.Internal(after, netip.Addr.Is6)
}

// reconcileNetwork creates or updates the "default" ClusterNetwork. If hosts need the current
// networks, it keeps them, and nodes continue to use them (see InForce).
func (c *Controllers) reconcileNetwork(ctx context.Context, key controller.Key) error {
	if key.Name != networkv1.ClusterNetworkDefault {
		return nil
	}
	client := c.Client.NetworkV1().ClusterNetworks()
	existing, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		desired := c.Network.DeepCopy()
		desired.Name = key.Name
		if _, err = client.Create(ctx, desired, metav1.CreateOptions{}); err == nil {
			c.report("")
		}
		return wrap(err, "create ClusterNetwork %q", key.Name)
	}
	if err != nil {
		return wrap(err, "get ClusterNetwork %q", key.Name)
	}
	hosts, err := c.hosts.List(labels.Everything())
	if err != nil {
		return wrap(err, "list HostSubnets")
	}
	problem := c.rejection(existing, hosts)
	if c.report(problem); problem != "" {
		return nil
	}
	desired := existing.DeepCopy()
	desired.Network, desired.HostSubnetLength = c.Network.Network, c.Network.HostSubnetLength
	desired.ServiceNetwork, desired.PluginName = c.Network.ServiceNetwork, c.Network.PluginName
	desired.ClusterNetworks = slices.Clone(c.Network.ClusterNetworks)
	desired.VXLANPort = c.Network.VXLANPort
	if equality.Semantic.DeepEqual(existing, desired) {
		return nil
	}
	_, err = client.Update(ctx, desired, metav1.UpdateOptions{})
	return wrap(err, "update ClusterNetwork %q", key.Name)
}

// wrap adds the attempted action to a non-nil error.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
