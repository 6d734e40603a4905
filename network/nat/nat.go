// Package nat owns the nftables table of a host: the source address of traffic that leaves the cluster, and the
// ports of the host that lead to pods.
//
// The agent keeps the table's chains (Ensure); the CNI plug-in adds and removes the host ports of one pod at a time
// (Publish, Withdraw). A pod is known here by an owner: the name of its device on the host, written as the comment of
// every map element that belongs to it, so the table itself tells what must go when the pod goes.
//
// The table is `ip <name>` and stands beside kube-proxy's `ip kube-proxy`. Both look at a packet at the same hooks; the
// first to rewrite a connection wins, and they never disagree, since a service's address is not an address of this host.
// An accept in one nftables table does not overrule a drop in another: a host firewall that drops forwarded traffic must
// itself accept the bridge (see the agent package).
package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"

	"sigs.k8s.io/knftables"
)

// Network is what the table of one host is made from.
type Network struct {
	Table       string       // name of the table, in family ip
	Bridge      string       // device that the pods of this host hang on
	ClusterCIDR netip.Prefix // addresses of all pods of the cluster
	ServiceCIDR netip.Prefix // addresses of all services; may be zero
	DNSAddress  netip.Addr   // the pods' DNS server on this host, which no host port may capture; may be zero
}

// Names of the objects in the table.
const (
	anyAddressMap  = "host-ports"         // protocol . port : pod address . pod port
	oneAddressMap  = "host-ports-address" // host address . protocol . port : pod address . pod port
	hairpinSet     = "hairpin"            // pod address . pod address, of pods with host ports
	insideSet      = "inside"             // pod and service addresses: what is not masqueraded
	hostPortsChain = "host-ports"
)

// Ensure creates the table or brings its chains and sets up to date, in one transaction. Host ports that are there
// already stay. It needs the program nft (1.0.1 or later).
func Ensure(ctx context.Context, n Network) error {
	nft, err := open(n.Table)
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

func addSets(tx *knftables.Transaction, n Network) {
	tx.Add(&knftables.Map{Name: anyAddressMap, Type: "inet_proto . inet_service : ipv4_addr . inet_service"})
	tx.Add(&knftables.Map{Name: oneAddressMap, Type: "ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service"})
	tx.Add(&knftables.Set{Name: hairpinSet, Type: "ipv4_addr . ipv4_addr"})

	inside := &knftables.Set{Name: insideSet, Type: "ipv4_addr", Flags: []knftables.SetFlag{knftables.IntervalFlag}}
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
	toHostPorts := "fib daddr type local jump " + hostPortsChain
	if n.DNSAddress.IsValid() {
		toHostPorts = fmt.Sprintf("ip daddr != %s %s", n.DNSAddress, toHostPorts)
	}

	chain(knftables.Chain{Name: hostPortsChain},
		"dnat ip to ip daddr . meta l4proto . th dport map @"+oneAddressMap,
		"dnat ip to meta l4proto . th dport map @"+anyAddressMap,
	)
	chain(base("prerouting", knftables.NATType, knftables.PreroutingHook, knftables.DNATPriority), toHostPorts)
	// nft before 1.0.8 knows the name dstnat at the prerouting hook only.
	chain(base("output", knftables.NATType, knftables.OutputHook, "-100"), toHostPorts)

	chain(base("postrouting", knftables.NATType, knftables.PostroutingHook, knftables.SNATPriority),
		// A pod that reaches itself through its host port would answer itself, past the rewriting.
		"ip saddr . ip daddr @"+hairpinSet+" masquerade",
		// The host reaches a host port through 127.0.0.1, which means nothing to the pod.
		fmt.Sprintf("oifname %q ip saddr 127.0.0.0/8 masquerade", n.Bridge),
		fmt.Sprintf("oifname != %q ip saddr %s ip daddr != @%s masquerade", n.Bridge, n.ClusterCIDR.Masked(), insideSet),
	)

	// route_localnet, which the rule for 127.0.0.1 needs, would open the host's loopback to pods. Replies arrive for
	// the bridge's address and are rewritten later than this, so nothing honest is dropped.
	chain(base("guard", knftables.FilterType, knftables.PreroutingHook, knftables.RawPriority),
		fmt.Sprintf("iifname %q ip daddr 127.0.0.0/8 drop", n.Bridge),
	)
	// Pods of one host reach each other through the host's routing, in and out of one device; the kernel would tell
	// them to go direct, past connection tracking.
	chain(base("redirects", knftables.FilterType, knftables.OutputHook, knftables.FilterPriority),
		fmt.Sprintf("oifname %q icmp type redirect drop", n.Bridge),
	)
}

// Delete removes tables. One that does not exist is no error; neither is a host without the program nft, where nothing
// can have made them.
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

// Table names an nftables table.
type Table struct {
	Family knftables.Family
	Name   string
}

func open(table string) (knftables.Interface, error) {
	nft, err := knftables.New(knftables.IPv4Family, table)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w (install the package nftables)", table, err)
	}
	return nft, nil
}
