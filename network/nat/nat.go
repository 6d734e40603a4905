// Package nat manages a host's nftables table, which masquerades traffic that leaves the cluster
// and forwards host ports to pods.
//
// The agent maintains the table's chains (Ensure). The CNI plugin adds and removes the host ports
// of one pod at a time (Publish, Unpublish). The comment on a map element is the element's owner:
// the name of the pod's device on the host. Therefore, the table itself shows which elements to
// remove with a pod.
//
// The table is `ip <name>`, or `ip6 <name>` for IPv6 networks, in addition to kube-proxy's
// `kube-proxy`. Both tables have chains at the same hooks; the first chain that rewrites a
// connection takes effect. The tables do not conflict, because a service's address is not an
// address of this host. An accept verdict in one nftables table does not override a drop verdict in
// another (see package hostfirewall).
package nat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Network describes a host's table for the IP family of Pods.
type Network struct {
	Table       string         // name of the table
	Bridge      string         // bridge of this host's pods
	Pods        []netip.Prefix // addresses of all pods; at least one network
	ServiceCIDR netip.Prefix   // addresses of all services; optional
	// DNSAddress is the address of the pods' DNS server on this host. It is excluded from host
	// ports; optional.
	DNSAddress netip.Addr
	// VXLANPort is the UDP port on which hosts exchange pod packets, or 0 if they do not use VXLAN.
	VXLANPort int
	// VXLANDevice is the device through which other hosts are reached. Packets sent through it keep
	// their source addresses; optional.
	VXLANDevice string
	// OnlyDevice is the only device, apart from the bridge, on which pod packets arrive; optional.
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
	// maxConnections is the maximum number of TCP connections from a pod to this host. These are
	// connections to the host's kubelet, router, registry and API server.
	maxConnections = 1_024
	// maxClients is the maximum number of pods whose connections and queries are counted, including
	// pods that no longer exist.
	maxClients = 1 << 16
	// maxQueryRate is the maximum number of queries per second from a pod to this host's DNS
	// server. maxQueryBurst is the number of additional queries that a pod can send in a burst. The
	// rate is limited because a query takes much more CPU time in the server than in the client. In
	// addition, the server has precedence over pods.
	maxQueryRate, maxQueryBurst = 2_000, 4_000
	// maxFlows is the maximum number of a pod's connections, of any protocol, that the kernel
	// tracks: by default, an eighth of the kernel's table. If the table is full, the new
	// connections of all pods and of the host are dropped.
	maxFlows = 32_768
	// flowShares is the number of shares into which a pod's connections are divided. The kernel
	// reads the complete list of one share for each new connection, so several shares are faster
	// than a single list.
	flowShares = 64
	// maxFlowSets is the maximum total number of shares for all pods.
	maxFlowSets = 1 << 17
)

// Ensure creates or updates the table's chains and sets in one transaction. It keeps existing host
// ports. It requires the nft program (version 1.0.1 or later).
func Ensure(ctx context.Context, n Network) error {
	nft, err := open(n.Family(), n.Table)
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

// Family returns the IP family of the table.
func (n Network) Family() ipfamily.Family { return ipfamily.Of(n.Pods[0].Addr()) }

// pods returns the addresses of all pods as an nftables set.
func (n Network) pods() string {
	var networks []string
	for _, pods := range n.Pods {
		networks = append(networks, pods.Masked().String())
	}
	return "{ " + strings.Join(networks, ", ") + " }"
}

func addSets(tx *knftables.Transaction, n Network) {
	kind := n.Family().Type()
	tx.Add(&knftables.Map{Name: anyAddressMap, Type: "inet_proto . inet_service : " + kind + " . inet_service"})
	tx.Add(&knftables.Map{Name: oneAddressMap, Type: kind + " . inet_proto . inet_service : " + kind + " . inet_service"})
	tx.Add(&knftables.Set{Name: hairpinSet, Type: kind + " . " + kind})
	tx.Add(&knftables.Set{Name: clientsSet, Type: kind, Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxClients))})
	tx.Add(&knftables.Set{Name: queriesSet, Type: kind, Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxClients))})

	tx.Add(&knftables.Set{Name: flowsSet, Type: kind + " . mark", Flags: []knftables.SetFlag{knftables.DynamicFlag}, Size: knftables.PtrTo(uint64(maxFlowSets))})

	inside := &knftables.Set{Name: insideSet, Type: kind, Flags: []knftables.SetFlag{knftables.IntervalFlag}}
	tx.Add(inside)
	tx.Flush(inside)
	for _, prefix := range append(slices.Clip(n.Pods), n.ServiceCIDR) {
		if prefix.IsValid() {
			tx.Add(&knftables.Element{Set: insideSet, Key: []string{prefix.Masked().String()}})
		}
	}
}

// formerChains lists the chains of earlier versions, which Ensure deletes.
var formerChains = []string{"redirects", "connections", "dns-queries", "flows", "vxlan-input", "vxlan-forward", "vxlan-output"}

func addChains(tx *knftables.Transaction, n Network) {
	for _, name := range formerChains {
		tx.Add(&knftables.Chain{Name: name})
		tx.Delete(&knftables.Chain{Name: name})
	}
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
	family, ip := n.Family(), n.Family().Header()
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
	// nft before version 1.0.8 supports the name dstnat only at the prerouting hook.
	chain(base("output", knftables.NATType, knftables.OutputHook, "-100"), toHostPorts)

	chain(base("postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority),
		// Without masquerading, a pod that connects to itself through its host port would reply to
		// itself directly, without address translation.
		ip+" saddr . "+ip+" daddr @"+hairpinSet+" masquerade",
		// If the host connects to a host port through 127.0.0.1, the pod cannot reply to this
		// source address.
		fmt.Sprintf("oifname %q %s saddr %s masquerade", n.Bridge, ip, family.Loopback()),
		fmt.Sprintf("oifname != { %q, %q } %[3]s saddr %[4]s %[3]s daddr != @%[5]s masquerade", n.Bridge, cmp.Or(n.VXLANDevice, n.Bridge), ip, n.pods(), insideSet),
	)

	// The rule for 127.0.0.1 requires route_localnet, which exposes the host's loopback addresses
	// to pods. This chain drops packets from pods to these addresses. Replies are sent to the
	// bridge's address and rewritten later, so they are not dropped.
	guard := append(n.vxlan("iifname != %q udp dport %d fib daddr type local notrack"), fmt.Sprintf("iifname %q %s daddr %s drop", n.Bridge, ip, family.Loopback()))
	if n.OnlyDevice != "" {
		guard = append(guard, fmt.Sprintf(`iifname != { %q, %q, "lo" } %s saddr %s counter drop`, n.Bridge, n.OnlyDevice, ip, n.pods()))
	}
	chain(base("guard", knftables.FilterType, knftables.PreroutingHook, knftables.RawPriority), guard...)
	// The host routes packets between its own pods, so they enter and leave through the same
	// device. Without this rule, the kernel would send redirects, and the pods would bypass
	// conntrack.
	chain(base("output-guard", knftables.FilterType, knftables.OutputHook, knftables.RawPriority),
		append(n.vxlan("oifname != %q udp dport %d notrack"), fmt.Sprintf("oifname %q %s drop", n.Bridge, family.Redirect()))...)
	chain(base("input", knftables.FilterType, knftables.InputHook, knftables.FilterPriority), n.inputRules()...)
	// This chain runs before addresses are translated. It counts connections, so it needs only the
	// first packet of each connection. It is a NAT chain, because the kernel calls NAT chains only
	// for that packet.
	chain(base("new-connections", knftables.NATType, knftables.PreroutingHook, "-150"),
		fmt.Sprintf("iifname %[1]q ct state new add @%[2]s { %[3]s saddr . jhash %[3]s daddr . th sport . th dport mod %[4]d seed 1 ct count over %[5]d } counter drop",
			n.Bridge, flowsSet, ip, flowShares, maxFlows/flowShares))
	chain(base("forward", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority),
		append(n.vxlan("udp dport %[2]d iifname %[1]q counter drop", "udp dport %[2]d oifname %[1]q counter drop"), n.metadataRule())...)
}

// metadataRule returns the rule that rejects packets from pods to clouds' metadata services. These
// services would give any pod the host's credentials. The rule accepts DNS queries, because a
// cloud's resolver can have the same address as its metadata service.
func (n Network) metadataRule() string {
	return fmt.Sprintf("iifname %q ct direction original %s daddr { %s } meta l4proto . th dport != { tcp . 53, udp . 53 } counter reject",
		n.Bridge, n.Family().Header(), n.Family().Metadata())
}

// inputRules returns the rules for packets from pods to this host.
func (n Network) inputRules() []string {
	ip := n.Family().Header()
	rules := []string{
		fmt.Sprintf("iifname != %q accept", n.Bridge),
		// Each connection to a host port uses memory of the platform that no pod's limit accounts
		// for. The count does not include closed connections.
		fmt.Sprintf("meta l4proto tcp ct state new add @%s { %s saddr ct count over %d } counter drop", clientsSet, ip, maxConnections),
	}
	if n.DNSAddress.IsValid() && ipfamily.Of(n.DNSAddress) == n.Family() {
		rules = append(rules, fmt.Sprintf("%[1]s daddr %[2]s udp dport 53 add @%[3]s { %[1]s saddr limit rate over %[4]d/second burst %[5]d packets } counter drop",
			ip, n.DNSAddress, queriesSet, maxQueryRate, maxQueryBurst))
	}
	// The packets of pods have this host's address outside the cluster network. If a pod could
	// reach a host's VXLAN port, it could therefore send packets on behalf of other pods. Service
	// addresses are translated before this hook and the forward hook.
	return append(rules, n.vxlan("udp dport %[2]d counter drop")...)
}

// vxlan returns rules for the VXLAN port. The arguments of each format are the bridge and the port.
func (n Network) vxlan(formats ...string) (rules []string) {
	for _, format := range formats {
		if n.VXLANPort != 0 {
			rules = append(rules, fmt.Sprintf(format, n.Bridge, n.VXLANPort))
		}
	}
	return rules
}

// Delete deletes tables. It ignores missing tables. On a host without the nft program, Delete is a
// no-op, because Slipway cannot have created tables without it.
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
		return nil, fmt.Errorf("open nftables table %q: %w; install the package nftables", table, err)
	}
	return nft, nil
}
