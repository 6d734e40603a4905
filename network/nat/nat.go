// Package nat manages the nftables table of a host: masquerading of traffic that leaves the
// cluster, and host ports of pods.
//
// The agent maintains the table's chains (Ensure). The CNI plugin adds and removes the host ports
// of one pod at a time (Publish, Unpublish). A pod is identified by an owner: the name of its
// device on the host, which is the comment of all its map elements. So the table itself identifies
// the elements to remove with the pod.
//
// The table is `ip <name>`, or `ip6 <name>` for IPv6 networks, next to kube-proxy's `kube-proxy`.
// Both have chains at the same hooks; the first to rewrite a connection takes effect. They do not
// conflict, because a service's address is not an address of this host. An accept in one nftables
// table does not override a drop in another: a host firewall that drops forwarded traffic must
// itself accept the bridge (see package agent).
package nat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Network describes the table of one host for the IP family of ClusterCIDR.
type Network struct {
	Table       string       // name of the table
	Bridge      string       // bridge of this host's pods
	ClusterCIDR netip.Prefix // addresses of all pods
	ServiceCIDR netip.Prefix // addresses of all services; optional
	// The pods' DNS server on this host, excluded from host ports; optional.
	DNSAddress netip.Addr
	// VXLANPort is the UDP port at which hosts exchange the packets of pods; 0 if they don't.
	VXLANPort int
	// VXLANDevice leads to other hosts. Packets through it keep their source addresses; optional.
	VXLANDevice string
	// OnlyDevice is the only device, apart from the bridge, at which packets of pods arrive;
	// optional.
	OnlyDevice string
}

// Names of the objects in the table.
const (
	anyAddressMap  = "host-ports"         // protocol . port : pod address . pod port
	oneAddressMap  = "host-ports-address" // host address . protocol . port : pod address . pod port
	hairpinSet     = "hairpin"            // pod address . pod address, of pods with host ports
	clientsSet     = "clients"            // pod address, with its connections to this host
	flowsSet       = "flows"              // pod address . share, with the connections of this share
	queriesSet     = "dns-queries"        // pod address, with the rate of its queries
	insideSet      = "inside"             // pod and service addresses, which are not masqueraded
	hostPortsChain = "host-ports"
)

const (
	// maxConnections limits the TCP connections of a pod to this host: to its kubelet, router and
	// registry, and to its API server.
	maxConnections = 1_024
	// maxClients limits the pods that are counted, including those that have ended.
	maxClients = 1 << 16
	// maxQueryRate limits the queries of a pod to the DNS server of this host, per second, and
	// maxQueryBurst how many more it can send at once. A query needs many times the processor time of
	// its client, and the server has precedence over pods.
	maxQueryRate, maxQueryBurst = 2_000, 4_000
	// maxFlows limits the connections of a pod, of any protocol, that the kernel tracks: an eighth of
	// its table by default. A full table drops the new connections of all pods and of the host.
	maxFlows = 32_768
	// flowShares is the number of shares of a pod's connections: for each new connection, the kernel
	// reads the whole list of a share.
	flowShares = 64
	// maxFlowSets is the number of shares of all pods.
	maxFlowSets = 1 << 17
)

// Ensure creates or updates the table's chains and sets in one transaction. It keeps existing host
// ports. It requires the program nft (1.0.1 or later).
func Ensure(ctx context.Context, n Network) error {
	nft, err := open(n.family(), n.Table)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	addSets(tx, n)
	addChains(tx, n)
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write nftables table %q: %w", n.Table, err)
	}
	return nil
}

func (n Network) family() ipfamily.Family { return ipfamily.Of(n.ClusterCIDR.Addr()) }

func addSets(tx *knftables.Transaction, n Network) {
	kind := n.family().Type()
	tx.Add(&knftables.Map{Name: anyAddressMap, Type: "inet_proto . inet_service : " + kind + " . inet_service"})
	tx.Add(&knftables.Map{Name: oneAddressMap, Type: kind + " . inet_proto . inet_service : " + kind + " . inet_service"})
	tx.Add(&knftables.Set{Name: hairpinSet, Type: kind + " . " + kind})
	tx.Add(&knftables.Set{Name: clientsSet, Type: kind, Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxClients))})
	tx.Add(&knftables.Set{Name: queriesSet, Type: kind, Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxClients))})

	tx.Add(&knftables.Set{Name: flowsSet, Type: kind + " . mark", Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxFlowSets))})

	inside := &knftables.Set{Name: insideSet, Type: kind, Flags: []knftables.SetFlag{knftables.IntervalFlag}}
	tx.Add(inside)
	tx.Flush(inside)
	for _, prefix := range []netip.Prefix{n.ClusterCIDR, n.ServiceCIDR} {
		if prefix.IsValid() {
			tx.Add(&knftables.Element{Set: insideSet, Key: []string{prefix.Masked().String()}})
		}
	}
}

func addChains(tx *knftables.Transaction, n Network) {
	chain := func(c knftables.Chain, rules ...string) {
		tx.Add(&c)
		tx.Flush(&c)
		for _, rule := range rules {
			tx.Add(&knftables.Rule{Chain: c.Name, Rule: rule})
		}
	}
	base := func(name string, kind knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority) knftables.Chain {
		return knftables.Chain{Name: name, Type: &kind, Hook: &hook, Priority: &priority}
	}
	family, ip := n.family(), n.family().Header()
	toHostPorts := "fib daddr type local jump " + hostPortsChain
	if n.DNSAddress.IsValid() {
		toHostPorts = fmt.Sprintf("%s daddr != %s %s", ip, n.DNSAddress, toHostPorts)
	}
	if family == ipfamily.IPv6 { // the kernel sends no packets from the loopback address to pods
		toHostPorts = fmt.Sprintf("%s daddr != %s %s", ip, family.Loopback(), toHostPorts)
	}

	chain(knftables.Chain{Name: hostPortsChain},
		"dnat "+ip+" to "+ip+" daddr . meta l4proto . th dport map @"+oneAddressMap,
		"dnat "+ip+" to meta l4proto . th dport map @"+anyAddressMap,
	)
	chain(base("prerouting", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority), toHostPorts)
	// nft before 1.0.8 supports the name dstnat only at the prerouting hook.
	chain(base("output", knftables.NATType, knftables.OutputHook, "-100"), toHostPorts)

	chain(base("postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority),
		// Without masquerading, a pod that connects to itself through its host port would reply to
		// itself directly, without address translation.
		ip+" saddr . "+ip+" daddr @"+hairpinSet+" masquerade",
		// The host connects to a host port through 127.0.0.1, which the pod cannot reply to.
		fmt.Sprintf("oifname %q %s saddr %s masquerade", n.Bridge, ip, family.Loopback()),
		fmt.Sprintf("oifname != { %q, %q } %[3]s saddr %[4]s %[3]s daddr != @%[5]s masquerade", n.Bridge, cmp.Or(n.VXLANDevice, n.Bridge), ip, n.ClusterCIDR.Masked(), insideSet),
	)

	// route_localnet, which the rule for 127.0.0.1 needs, would expose the host's loopback to pods.
	// Replies arrive for the bridge's address and are rewritten later, so they are not dropped.
	guard := append(n.vxlan("iifname != %q udp dport %d fib daddr type local notrack"), fmt.Sprintf("iifname %q %s daddr %s drop", n.Bridge, ip, family.Loopback()))
	if n.OnlyDevice != "" {
		guard = append(guard, fmt.Sprintf(`iifname != { %q, %q, "lo" } %s saddr %s counter drop`, n.Bridge, n.OnlyDevice, ip, n.ClusterCIDR.Masked()))
	}
	chain(base("guard", knftables.FilterType, knftables.PreroutingHook, knftables.RawPriority), guard...)
	// Pods on one host communicate through the host's routing, in and out of one device. Without
	// this rule, the kernel would send redirects, and the pods would bypass conntrack.
	chain(base("redirects", knftables.FilterType, knftables.OutputHook, knftables.FilterPriority),
		fmt.Sprintf("oifname %q %s drop", n.Bridge, family.Redirect()),
	)
	// Each connection to a port of the host needs memory of the platform, which no pod's limit counts.
	// Closed connections do not count.
	chain(base("connections", knftables.FilterType, knftables.InputHook, knftables.FilterPriority),
		fmt.Sprintf("iifname %q meta l4proto tcp ct state new add @%s { %s saddr ct count over %d } counter drop", n.Bridge, clientsSet, ip, maxConnections))
	var queries []string
	if n.DNSAddress.IsValid() && ipfamily.Of(n.DNSAddress) == family {
		queries = []string{fmt.Sprintf("iifname %q %[2]s daddr %[3]s udp dport 53 add @%[4]s { %[2]s saddr limit rate over %[5]d/second burst %[6]d packets } counter drop",
			n.Bridge, ip, n.DNSAddress, queriesSet, maxQueryRate, maxQueryBurst)}
	}
	chain(base("dns-queries", knftables.FilterType, knftables.InputHook, knftables.FilterPriority), queries...)
	// Before addresses are translated. Only the first packet of a connection counts.
	chain(base("flows", knftables.FilterType, knftables.PreroutingHook, "-150"),
		fmt.Sprintf("iifname %[1]q ct state new ct status & confirmed == 0 add @%[2]s { %[3]s saddr . jhash %[3]s daddr . th sport . th dport mod %[4]d seed 1 ct count over %[5]d } counter drop",
			n.Bridge, flowsSet, ip, flowShares, maxFlows/flowShares))
	// A pod that reaches the VXLAN port of a host could send packets of other pods: outside of the
	// cluster network, they have the address of this host. Services are translated before these hooks.
	chain(base("vxlan-input", knftables.FilterType, knftables.InputHook, knftables.FilterPriority),
		n.vxlan("iifname %q udp dport %d counter drop")...)
	chain(base("vxlan-forward", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority),
		n.vxlan("iifname %q udp dport %d counter drop", "oifname %q udp dport %d counter drop")...)
	chain(base("vxlan-output", knftables.FilterType, knftables.OutputHook, knftables.RawPriority),
		n.vxlan("oifname != %q udp dport %d notrack")...)
}

// vxlan returns rules about the VXLAN port. Each has the bridge and the port as arguments.
func (n Network) vxlan(formats ...string) (rules []string) {
	for _, format := range formats {
		if n.VXLANPort != 0 {
			rules = append(rules, fmt.Sprintf(format, n.Bridge, n.VXLANPort))
		}
	}
	return rules
}

// Delete deletes tables. It ignores missing tables. It does nothing on a host without the program
// nft, because nothing can have created the tables.
func Delete(ctx context.Context, tables ...Table) error {
	var errs []error
	for _, t := range tables {
		nft, err := knftables.New(t.Family, t.Name)
		if errors.Is(err, exec.ErrNotFound) {
			return nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("open nftables table %q: %w", t.Name, err))
			continue
		}
		tx := nft.NewTransaction()
		tx.Delete(&knftables.Table{})
		if err := nft.Run(ctx, tx); err != nil && !knftables.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete nftables table %q: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Table identifies an nftables table.
type Table struct {
	Family knftables.Family
	Name   string
}

func open(f ipfamily.Family, table string) (knftables.Interface, error) {
	nft, err := knftables.New(f.Table(), table)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w (install the package nftables)", table, err)
	}
	return nft, nil
}
