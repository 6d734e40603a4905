// Package allocator assigns projects' egress IPs to hosts whose HostSubnet has egressCIDRs. It
// writes egressIPs only in these HostSubnets. In all other HostSubnets, administrators write the
// egressIPs. The package moves addresses when a host is lost and when it responds again, and
// balances addresses across the hosts.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Enabling Automatic IP
// Assignment for External Project Traffic.
package allocator

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	networktyped "github.com/openshift/client-go/network/clientset/versioned/typed/network/v1"
	networkinformers "github.com/openshift/client-go/network/informers/externalversions"
	networklisters "github.com/openshift/client-go/network/listers/network/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
)

// automaticAnnotation marks a HostSubnet whose egressIPs this package wrote. When an administrator
// removes the egressCIDRs from it, the package removes the egressIPs too.
const automaticAnnotation = "slipway.openshift.io/automatic-egress-ips"

// minBackoff is short because most errors are conflicts with other writers.
const minBackoff = 50 * time.Millisecond

// Allocator is the component that assigns egress IPs to hosts. Only one instance per cluster may
// run at a time.
type Allocator struct {
	// Client reads and updates the pod network's objects.
	Client networkclient.Interface

	monitor egressip.Monitor
}

// Name returns the component's name.
func (*Allocator) Name() string { return "egress-ips" }

// Run assigns addresses until ctx is done.
func (a *Allocator) Run(ctx context.Context, ready func()) error {
	factory := networkinformers.NewSharedInformerFactory(a.Client, 0)
	objects := factory.Network().V1()
	r := &reconciler{
		client: a.Client.NetworkV1().HostSubnets(), hosts: objects.HostSubnets().Lister(), projects: objects.NetNamespaces().Lister(),
		monitor: &a.monitor,
	}
	trigger := &controller.Trigger{}
	a.monitor.Changed = func() { trigger.Add(everything) }
	manager := controller.Manager{{
		Name: "egress IPs", Workers: 1, Reconcile: r.reconcile, Trigger: trigger, MinBackoff: minBackoff,
		Watches: []controller.Watch{
			{Informer: objects.HostSubnets().Informer(), Keys: onlyOne},
			{Informer: objects.NetNamespaces().Informer(), Keys: onlyOne, Changed: addressesChanged},
		},
	}}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks.Go(func() { a.monitor.Run(ctx) })
	defer controller.Start(ctx, factory)()
	return manager.Run(ctx, ready)
}

// everything is the only key in the work queue, because each assignment depends on all hosts and
// projects.
var everything = controller.Key{Name: "egress-ips"}

func onlyOne(any) []controller.Key { return []controller.Key{everything} }

// addressesChanged reports whether an update to a NetNamespace changes its egress IPs.
func addressesChanged(old, new any) bool {
	return !slices.Equal(old.(*networkv1.NetNamespace).EgressIPs, new.(*networkv1.NetNamespace).EgressIPs)
}

type reconciler struct {
	client   networktyped.HostSubnetInterface
	hosts    networklisters.HostSubnetLister
	projects networklisters.NetNamespaceLister
	monitor  *egressip.Monitor
}

// reconcile writes the addresses of all hosts. It removes addresses from hosts before it adds them
// to other hosts, so that no address is assigned to two hosts.
func (r *reconciler) reconcile(ctx context.Context, _ controller.Key) error {
	hosts, err := r.hosts.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list HostSubnets: %w", err)
	}
	projects, err := r.projects.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list NetNamespaces: %w", err)
	}
	r.monitor.Watch(gateways(hosts))
	desired := allocate(hosts, projects, r.monitor.Alive)
	for _, isLast := range []bool{false, true} {
		for i, existing := range hosts {
			changed := existing.DeepCopy()
			assign(changed, desired[existing.Name], isLast)
			if equality.Semantic.DeepEqual(existing, changed) {
				continue
			}
			if hosts[i], err = r.client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("update HostSubnet %q: %w", existing.Name, err)
			}
			slog.Info("assigned egress IPs", "node", existing.Name, "old", existing.EgressIPs, "new", changed.EgressIPs)
		}
	}
	return nil
}

// assign sets a host's addresses. Unless isLast is true, it only removes addresses.
func assign(subnet *networkv1.HostSubnet, desired []netip.Addr, isLast bool) {
	isAutomatic := len(subnet.EgressCIDRs) > 0
	if !isAutomatic && subnet.Annotations[automaticAnnotation] == "" {
		return
	}
	var addresses []networkv1.HostSubnetEgressIP
	for _, address := range desired {
		text := networkv1.HostSubnetEgressIP(address.String())
		if isLast || slices.Contains(subnet.EgressIPs, text) {
			addresses = append(addresses, text)
		}
	}
	// The order is not significant, and administrators can use any order.
	if strings.Join(sorted(subnet.EgressIPs), " ") != strings.Join(sorted(addresses), " ") {
		subnet.EgressIPs = addresses
	}
	if isAutomatic {
		metav1.SetMetaDataAnnotation(&subnet.ObjectMeta, automaticAnnotation, "true")
		return
	}
	delete(subnet.Annotations, automaticAnnotation)
}

func sorted(list []networkv1.HostSubnetEgressIP) (texts []string) {
	for _, text := range list {
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

// gateways returns the pod network addresses of hosts with egressCIDRs, keyed by host name.
func gateways(hosts []*networkv1.HostSubnet) map[string]netip.Addr {
	addresses := map[string]netip.Addr{}
	for _, host := range hosts {
		if subnet, err := netip.ParsePrefix(host.Subnet); err == nil && len(host.EgressCIDRs) > 0 {
			addresses[host.Name] = cni.Gateway(subnet)
		}
	}
	return addresses
}
