package idle

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"
)

// Priorities of the chains. Datagrams are intercepted before conntrack, so that it does not track
// them. Connections are intercepted before the service proxy's chains, which rewrite at -100 and
// filter later. nft before 1.0.8 supports names of priorities only at some hooks.
const (
	beforeTracking = "-310"
	beforeProxy    = "-110"
)

// mark is the bit in the marks of redirected connections and intercepted datagrams.
const mark = "0x20000000"

// receivers are the destinations of intercepted packets: a port of the host, and a group of the
// kernel's packet log.
type receivers struct{ connections, group uint16 }

// Rules that match packets to idle services, and their responses, using the sets of a protocol.
const (
	toAddress, toNodePort     = "ip daddr . %[1]s dport @%[1]s-addresses", "ip daddr != 127.0.0.0/8 %[1]s dport @%[1]s-node-ports fib daddr type local"
	fromAddress, fromNodePort = "ip saddr . %[1]s sport @%[1]s-addresses", "ip saddr != 127.0.0.0/8 %[1]s sport @%[1]s-node-ports fib saddr type local"
)

// write replaces the table. The new table intercepts packets to the destinations.
func write(ctx context.Context, name string, d receivers, places map[destination]target) error {
	nft, err := open(name)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{})
	for _, protocol := range []string{"tcp", "udp"} {
		tx.Add(&knftables.Set{Name: protocol + "-addresses", Type: "ipv4_addr . inet_service"})
		tx.Add(&knftables.Set{Name: protocol + "-node-ports", Type: "inet_service"})
	}
	for dest := range places {
		port := strconv.Itoa(int(dest.Port()))
		element := &knftables.Element{Set: strings.ToLower(string(dest.protocol)) + "-addresses", Key: []string{dest.Addr().String(), port}}
		if dest.Addr().IsUnspecified() {
			element = &knftables.Element{Set: strings.ToLower(string(dest.protocol)) + "-node-ports", Key: []string{port}}
		}
		tx.Add(element)
	}
	addChains(tx, d)
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write nftables table %q: %w", name, err)
	}
	return nil
}

func addChains(tx *knftables.Transaction, d receivers) {
	chain := func(name string, kind knftables.BaseChainType, hook knftables.BaseChainHook, priority knftables.BaseChainPriority, rules ...string) {
		tx.Add(&knftables.Chain{Name: name, Type: &kind, Hook: &hook, Priority: &priority})
		for _, rule := range rules {
			tx.Add(&knftables.Rule{Chain: name, Rule: rule})
		}
	}
	log := fmt.Sprintf(" log group %d queue-threshold 1 ", d.group)
	untracked := []string{fmt.Sprintf(fromAddress, "udp") + " notrack", fmt.Sprintf(fromNodePort, "udp") + " notrack"}
	chain("prerouting-datagrams", knftables.FilterType, knftables.PreroutingHook, beforeTracking, append(untracked,
		fmt.Sprintf("iif lo meta mark and %s == %[1]s drop", mark), fmt.Sprintf(toAddress, "udp")+log+"drop", fmt.Sprintf(toNodePort, "udp")+log+"drop")...)
	// A packet that is dropped in the output hook causes an error in the sender. Route it to the
	// loopback device instead.
	away := log + fmt.Sprintf("notrack meta mark set meta mark or %s ip daddr set 127.0.0.1 accept", mark)
	chain("output-datagrams", knftables.RouteType, knftables.OutputHook, beforeTracking, append(untracked,
		fmt.Sprintf(toAddress, "udp")+away, fmt.Sprintf(toNodePort, "udp")+away)...)
	for name, hook := range map[string]knftables.BaseChainHook{"prerouting": knftables.PreroutingHook, "output": knftables.OutputHook} {
		redirect := fmt.Sprintf(" ct mark set ct mark or %s redirect to :%d", mark, d.connections)
		chain(name, knftables.NATType, hook, beforeProxy, fmt.Sprintf(toAddress, "tcp")+redirect, fmt.Sprintf(toNodePort, "tcp")+redirect)
	}
	// If no process accepts a connection because the node's process has ended, do not reject it:
	// the client retransmits until a process accepts it.
	tx.Add(&knftables.Chain{Name: "redirected"})
	for _, rule := range []string{"socket transparent 0 accept", "socket transparent 1 accept", "counter drop"} {
		tx.Add(&knftables.Rule{Chain: "redirected", Rule: rule})
	}
	chain("input", knftables.FilterType, knftables.InputHook, knftables.FilterPriority, fmt.Sprintf("tcp flags and (fin|syn|rst|ack) == syn ct mark and %s == %[1]s jump redirected", mark))
}

// remove deletes the table.
func remove(ctx context.Context, name string) error {
	nft, err := open(name)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("delete nftables table %q: %w", name, err)
	}
	return nil
}

func open(name string) (knftables.Interface, error) {
	nft, err := knftables.New(knftables.IPv4Family, name)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w (install the package nftables)", name, err)
	}
	return nft, nil
}
