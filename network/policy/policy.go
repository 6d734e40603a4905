// Package policy enforces pods' network policies (networking.k8s.io/v1) and projects' egress
// firewalls (EgressNetworkPolicy in network.openshift.io/v1) on a node.
//
// A pod that a policy selects is isolated: its connections in the direction of the policy are
// dropped unless a policy allows them. The rules are in an nftables table at the forward hook.
// Packets between pods, and between pods and other hosts, always traverse this hook:
//
//	packet ── egress chain ── ingress chain ── pod
//	          map: source      map: destination
//	            │                │
//	            ▼                ▼
//	          chain of the pods that the same policies select
//	            ├─ jump: chain of policy 1 ── rules with sets of peers ── accept
//	            ├─ jump: chain of policy 2
//	            └─ drop
//
// An egress firewall restricts the connections of a project's pods to addresses outside the
// cluster, and to all addresses of nodes. The project's pods share the firewall's chain, which
// contains the rules in their order. The addresses of a DNS name form a set. The node's DNS server
// adds addresses to the set (see Names) before a pod receives the response. refresh.go resolves the
// names again when their records expire.
//
//	packet ── external chain ── chain of the project ── first rule that matches
//	          map: source
//
// The ClusterNetwork "default" specifies the network plugin, which determines what the component
// enforces:
//
//   - redhat/openshift-ovs-networkpolicy: network policies and egress firewalls;
//   - redhat/openshift-ovs-multitenant: network policies, egress firewalls, and the isolation of
//     projects with different network IDs (see addNetworks);
//   - redhat/openshift-ovs-subnet: nothing.
//
// The CNI plugin calls the component before a pod starts (see cni.Config.PolicySocket). The call
// returns when the rules for the pod are in the kernel, so the pod cannot send or receive packets
// before that. The component identifies its node's pods by the plugin's leases, not by
// status.podIP, which arrives later and can be stale. If the labels of a pod in a project with
// policies are unknown, the component drops all of the pod's packets.
//
// If the component stops, the kernel keeps enforcing the rules, and no new pod starts.
//
// Source: Kubernetes documentation, Network Policies; OpenShift Container Platform 3.11 Cluster
// Administration, Enabling NetworkPolicy, and Using an Egress Firewall to Limit Access to External
// Resources.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/multicast"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// Enforcer is the component that enforces network policies on a node.
type Enforcer struct {
	// NodeName is the node's name.
	NodeName string
	// Client can watch pods, namespaces, network policies and the services in the default project,
	// and create events.
	Client kubernetes.Interface
	// Network can watch ClusterNetworks, HostSubnets, EgressNetworkPolicies and NetNamespaces.
	Network networkclient.Interface
	// Networks contains the cluster's networks in the first IP family, and Second contains its
	// networks in the second IP family. Second is optional.
	Networks, Second Networks
	// DualStack is used to derive the hosts' second subnets; optional without Second.
	DualStack dualstack.Networks
	// Names receives the addresses of DNS names from the node's DNS server.
	Names *Names
	// Resolvable receives the names that the node's pods can resolve.
	Resolvable *Resolvable
	// Resolver is the address and port of the node's DNS server.
	Resolver string
	// Table is the name of the component's nftables tables. The tables for policies are in the ip
	// family and, with Second, also in the ip6 family. The table for multicast is in the netdev
	// family.
	Table string
	// Socket is the path of the Unix socket that the CNI plugin connects to.
	Socket string
	// LeaseDir is the directory of the CNI plugin's leases.
	LeaseDir string
	// Tunnel receives the network IDs of the node's pods.
	Tunnel *vxlan.Tunnel
	// Direct means that TCP packets between hosts bypass the rules if no policy restricts them.
	Direct bool
	// CheckInterval is the interval between two checks that the table exists. It must be positive.
	CheckInterval time.Duration

	timeouts timeouts // defaultTimeouts if zero
	note     func(text string)
	monitor  egressip.Monitor
}

// errStopped means that the component is stopping. The CNI plugin retries the call.
var errStopped = errors.New("the component network-policy is stopping")

// retryBackoff is the delay before a retry after a failure to write the table.
const retryBackoff = time.Second

// Name returns the component's name.
func (*Enforcer) Name() string { return "network-policy" }

// Notes sets the function that reports policies that do not have the effect that users expect. It
// reports projects that are closed because their policies are too large, and egress firewalls that
// do not apply.
func (e *Enforcer) Notes(note func(text string)) { e.note = note }

// Run enforces policies until ctx is done. The rules remain in effect after Run returns.
func (e *Enforcer) Run(ctx context.Context, ready func()) error {
	tables, err := e.openTables()
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	delivery, err := multicast.Open(e.Table, e.Networks.Tunnel)
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	objects := newObjects(e.Client, e.Network)
	objects.dualStack, objects.podNetworks = e.DualStack, slices.Concat(e.Networks.Pods, e.Second.Pods)
	if resolver, err := netip.ParseAddrPort(e.Resolver); err == nil {
		objects.resolver = resolver.Addr()
	}
	defer objects.stop()
	defer cancel()
	changes, err := objects.watch()
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	if !objects.start(ctx) || !objects.awaitPlugin(ctx) {
		return nil
	}
	lost := make(chan struct{}, 1)
	e.monitor.Changed = func() {
		select {
		case lost <- struct{}{}:
		default: // a value is already pending
		}
	}
	// When the VXLAN device is created, write the rules again, because multicast packets from other
	// hosts arrive through this device.
	e.Tunnel.Follow(e.networks(objects), e.monitor.Changed)
	server, err := listen(e.Socket, objects, e.Tunnel, cmp.Or(e.timeouts, defaultTimeouts()))
	if err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	s := &enforcement{Enforcer: e, objects: objects, tables: tables, delivery: delivery, requests: server.requests, reporter: newReporter(e)}
	if err := errors.Join(s.restore(ctx), s.sync(ctx)); err != nil {
		server.close()
		return fmt.Errorf("network policy: %w", err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { server.serve(ctx) })
	tasks.Go(func() { e.Names.refresh(ctx, resolver(e.Resolver, e.Names.recordTypes())) })
	tasks.Go(func() { s.reporter.run(ctx) })
	tasks.Go(func() { e.monitor.Run(ctx) })
	ready()
	s.loop(ctx, changes, lost)
	server.close()
	tasks.Wait()
	return nil
}

// openTables returns the policy tables, one for each IP family.
func (e *Enforcer) openTables() (tables []*table, err error) {
	for _, networks := range []Networks{e.Networks, e.Second} {
		if len(networks.Pods) == 0 {
			continue
		}
		t, err := openTable(e.Table, networks)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// enforcement is the state of a running Enforcer.
type enforcement struct {
	*Enforcer
	objects  *objects
	tables   []*table            // one for each IP family
	delivery *multicast.Table    // table for multicast packets
	requests <-chan chan<- error // requests from the CNI plugin
	reporter *reporter
	plugin   string                   // the cluster's network plugin
	exits    map[string]egressip.Exit // exits of projects at the last success of forgetFlows
}

// loop writes the rules after each change and each request, until ctx is done. A single write
// applies all preceding changes and requests.
func (s *enforcement) loop(ctx context.Context, changes, lost <-chan struct{}) {
	ticker := time.NewTicker(s.CheckInterval)
	defer ticker.Stop()
	var retry <-chan time.Time
	for {
		var waiting []chan<- error
		var err error
		namesOnly := false
		select {
		case <-ctx.Done():
			return
		case request := <-s.requests:
			waiting = append(waiting, request)
		case request := <-s.Names.requests:
			waiting, namesOnly = append(waiting, request), true
		case <-changes:
		case <-lost:
		case <-retry:
		case <-ticker.C:
			err = errors.Join(s.each(func(t *table) error { return t.check(ctx) }), s.delivery.Check(ctx), s.Tunnel.Age())
		}
		waiting = append(waiting, drain(s.Names.requests)...)
		write := s.syncNames
		if !namesOnly {
			waiting = append(waiting, drain(s.requests)...)
			write, retry = s.sync, nil
		}
		if err == nil {
			err = write(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.Error("cannot enforce network policies", "error", err)
			retry = time.After(retryBackoff)
		}
		if !namesOnly {
			// If delivery fails, new pods can still start.
			if err := s.deliver(ctx); err != nil && ctx.Err() == nil {
				slog.Error("cannot set up the delivery of multicast packets", "error", err)
				retry = time.After(retryBackoff)
			}
		}
		for _, request := range waiting {
			request <- err
		}
	}
}

func drain(requests <-chan chan<- error) (waiting []chan<- error) {
	for {
		select {
		case request := <-requests:
			waiting = append(waiting, request)
		default:
			return waiting
		}
	}
}

// restore reads the DNS names' addresses from the rules of a previous process.
func (s *enforcement) restore(ctx context.Context) error {
	if s.objects.plugin() == networkplugin.Subnet {
		return nil
	}
	names := s.objects.snapshot(s.NodeName, nil).firewallNames()
	s.Names.set(names)
	for name := range names {
		err := s.each(func(t *table) error {
			addresses, err := t.addresses(ctx, nameSet(name))
			s.Names.restore(name, addresses)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls a function with each IP family's table.
func (s *enforcement) each(f func(t *table) error) error {
	var errs []error
	for _, t := range s.tables {
		errs = append(errs, f(t))
	}
	return errors.Join(errs...)
}

// sync makes the kernel enforce the current policies. It does so even if it cannot store the names
// that pods can resolve.
func (s *enforcement) sync(ctx context.Context) error {
	// Keep the last known plugin: if an administrator deletes the ClusterNetwork, it is missing
	// until the control plane creates it again.
	s.plugin = cmp.Or(s.objects.plugin(), s.plugin)
	exits := s.objects.exits(s.monitor.Alive)
	s.monitor.Watch(s.objects.hostsOf(exits))
	if err := s.Tunnel.Refresh(); err != nil {
		return fmt.Errorf("set network IDs of VXLAN: %w", err)
	}
	held := s.hold(exits)
	local, err := cni.ListPods(s.LeaseDir)
	if err != nil {
		return err
	}
	if s.plugin == networkplugin.Subnet || s.plugin != networkplugin.Multitenant && !s.objects.hasPolicies() && len(exits) == 0 {
		s.Names.set(nil)
		stored := s.Resolvable.set(resolvable{})
		s.reporter.report(nil, nil, nil, nil)
		if err := s.each(func(t *table) error { return t.apply(ctx, newRuleset(t.networks.family())) }); err != nil {
			return errors.Join(err, stored)
		}
		s.connect(direct(local, s.objects.find, newRuleset(ipfamily.IPv4), s.Direct))
		s.forget(exits, local)
		s.release(exits)
		return stored
	}
	snapshot := s.objects.snapshot(s.NodeName, local)
	snapshot.plugin, snapshot.node, snapshot.exits = s.plugin, s.NodeName, exits
	s.Names.set(snapshot.firewallNames())
	stored := s.Resolvable.set(snapshot.resolvable())
	snapshot.names = s.Names.addresses()
	var closed []string
	var connected map[netip.Addr]vxlan.Local
	err = s.each(func(t *table) error {
		rules := compile(snapshot.of(t.networks.family()))
		closed = append(closed, rules.closed...)
		if t.networks.family() == ipfamily.IPv4 {
			connected = direct(local, s.objects.find, rules, s.Direct)
			if err := s.Tunnel.Restrict(connected); err != nil {
				return fmt.Errorf("restrict direct connections: %w", err)
			}
		}
		return t.apply(ctx, rules)
	})
	if err != nil {
		return errors.Join(err, stored)
	}
	s.connect(connected)
	s.forget(exits, local)
	s.Names.confirm(snapshot.names)
	slices.Sort(closed)
	s.reporter.report(slices.Compact(closed), snapshot.firewallsByProject(), exits, held)
	s.release(exits)
	return stored
}

// connect enables direct connections for pods. If connect fails, the pods' packets take the path
// through the kernel's network stack.
func (s *enforcement) connect(pods map[netip.Addr]vxlan.Local) {
	if err := s.Tunnel.Connect(pods); err != nil {
		slog.Error("cannot connect pods directly", "error", err)
	}
}

// forget calls forgetFlows. If forgetFlows fails, some open connections keep a wrong source
// address, and their packets are dropped until a later call succeeds.
func (s *enforcement) forget(exits map[string]egressip.Exit, local []cni.Pod) {
	if err := s.forgetFlows(exits, local); err != nil {
		slog.Error("cannot close connections that use former egress IPs", "error", err)
	}
}

// syncNames makes the kernel enforce the current addresses of DNS names.
func (s *enforcement) syncNames(ctx context.Context) error {
	if slices.ContainsFunc(s.tables, func(t *table) bool { return t.current == nil }) {
		return s.sync(ctx)
	}
	names := s.Names.addresses()
	err := s.each(func(t *table) error { return t.apply(ctx, t.current.withNames(namesIn(t.networks.family(), names))) })
	if err != nil {
		return err
	}
	s.Names.confirm(names)
	return nil
}
