package idle

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"
)

// Priorities of our chains. Datagrams are taken before the kernel follows connections, so that it knows nothing of them; connections before the
// service proxy's chains, which rewrite at -100 and judge later. nft before 1.0.8 knows names of priorities at some hooks only.
const (
	beforeTracking = "-310"
	beforeProxy    = "-110"
)

// mark is a bit of the marks of connections that were redirected, and of datagrams that were taken.
const mark = "0x20000000"

// doors are where packets come out of the kernel: a port of the host, and a group of the kernel's log.
type doors struct{ connections, group uint16 }

// Rules that find packets to idle services, and their answers, by the sets of a protocol.
const (
	toAddress, toNodePort     = "ip daddr . %[1]s dport @%[1]s-addresses", "ip daddr != 127.0.0.0/8 %[1]s dport @%[1]s-node-ports fib daddr type local"
	fromAddress, fromNodePort = "ip saddr . %[1]s sport @%[1]s-addresses", "ip saddr != 127.0.0.0/8 %[1]s sport @%[1]s-node-ports fib saddr type local"
)

// write replaces the table by one that takes packets to the places.
func write(ctx context.Context, name string, d doors, places map[place]target) error {
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
	for where := range places {
		port := strconv.Itoa(int(where.Port()))
		element := &knftables.Element{Set: strings.ToLower(string(where.protocol)) + "-addresses", Key: []string{where.Addr().String(), port}}
		if where.Addr().IsUnspecified() {
			element = &knftables.Element{Set: strings.ToLower(string(where.protocol)) + "-node-ports", Key: []string{port}}
		}
		tx.Add(element)
	}
	addChains(tx, d)
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write nftables table %q: %w", name, err)
	}
	return nil
}

func addChains(tx *knftables.Transaction, d doors) {
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
	// A packet that is dropped on its way out is an error for who sends it. It goes to the loopback instead.
	away := log + fmt.Sprintf("notrack meta mark set meta mark or %s ip daddr set 127.0.0.1 accept", mark)
	chain("output-datagrams", knftables.RouteType, knftables.OutputHook, beforeTracking, append(untracked,
		fmt.Sprintf(toAddress, "udp")+away, fmt.Sprintf(toNodePort, "udp")+away)...)
	for name, hook := range map[string]knftables.BaseChainHook{"prerouting": knftables.PreroutingHook, "output": knftables.OutputHook} {
		redirect := fmt.Sprintf(" ct mark set ct mark or %s redirect to :%d", mark, d.connections)
		chain(name, knftables.NATType, hook, beforeProxy, fmt.Sprintf(toAddress, "tcp")+redirect, fmt.Sprintf(toNodePort, "tcp")+redirect)
	}
	// A connection that nobody accepts, since the node's process has ended, is not refused: the client tries again until somebody does.
	tx.Add(&knftables.Chain{Name: "redirected"})
	for _, rule := range []string{"socket transparent 0 accept", "socket transparent 1 accept", "counter drop"} {
		tx.Add(&knftables.Rule{Chain: "redirected", Rule: rule})
	}
	chain("input", knftables.FilterType, knftables.InputHook, knftables.FilterPriority, fmt.Sprintf("tcp flags and (fin|syn|rst|ack) == syn ct mark and %s == %[1]s jump redirected", mark))
}

// remove takes the table away.
func remove(ctx context.Context, name string) error {
	nft, err := open(name)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("remove nftables table %q: %w", name, err)
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
