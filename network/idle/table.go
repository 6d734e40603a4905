package idle

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Chain priorities. Datagrams are intercepted before conntrack, so that conntrack does not track
// them. Connections are intercepted before the service proxy's chains, which rewrite packets at
// priority -100 and filter them later. The priorities are numbers, because nft before version 1.0.8
// supports priority names only at some hooks.
const (
	beforeTracking = "-310"
	beforeProxy    = "-110"
)

// mark is the mark bit of redirected connections and intercepted datagrams.
const mark = "0x20000000"

// receivers contains the destinations of an IP family's intercepted packets: a port on the host,
// and a group of the kernel's packet log.
type receivers struct {
	family             ipfamily.Family
	connections, group uint16
}

// Formats of rules that match packets to idle services and the responses to them. The rules refer
// to the sets of one protocol.
const (
	toAddress, toNodePort     = "%[2]s daddr . %[1]s dport @%[1]s-addresses", "%[2]s daddr != %[3]s %[1]s dport @%[1]s-node-ports fib daddr type local"
	fromAddress, fromNodePort = "%[2]s saddr . %[1]s sport @%[1]s-addresses", "%[2]s saddr != %[3]s %[1]s sport @%[1]s-node-ports fib saddr type local"
)

// match completes the format of a rule with a protocol and the receivers' IP family.
func (d receivers) match(rule, protocol string) string {
	return fmt.Sprintf(rule, protocol, d.family.Header(), d.family.Loopback())
}

// write replaces the table of an IP family. The new table intercepts packets to the given
// destinations. Without destinations, the table has no chains, because each chain slows down every
// packet on the host.
func write(ctx context.Context, name string, d receivers, places map[destination]target) error {
	nft, err := open(d.family, name)
	if err != nil {
		return err
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{})
	for _, protocol := range []string{"tcp", "udp"} {
		tx.Add(&knftables.Set{Name: protocol + "-addresses", Type: d.family.Type() + " . inet_service"})
		tx.Add(&knftables.Set{Name: protocol + "-node-ports", Type: "inet_service"})
	}
	isEmpty := true
	for dest, tgt := range places {
		if tgt.family != d.family {
			continue
		}
		isEmpty = false
		port := strconv.Itoa(int(dest.Port()))
		element := &knftables.Element{Set: strings.ToLower(string(dest.protocol)) + "-addresses", Key: []string{dest.Addr().String(), port}}
		if dest.Addr().IsUnspecified() {
			element = &knftables.Element{Set: strings.ToLower(string(dest.protocol)) + "-node-ports", Key: []string{port}}
		}
		tx.Add(element)
	}
	if !isEmpty {
		addChains(tx, d)
	}
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
	untracked := []string{d.match(fromAddress, "udp") + " notrack", d.match(fromNodePort, "udp") + " notrack"}
	chain("prerouting-datagrams", knftables.FilterType, knftables.PreroutingHook, beforeTracking, append(untracked,
		fmt.Sprintf("iif lo meta mark and %s == %[1]s drop", mark), d.match(toAddress, "udp")+log+"drop", d.match(toNodePort, "udp")+log+"drop")...)
	// Do not drop the packet, because a drop in the output hook causes an error in the sender.
	// Route the packet to the loopback device instead.
	away := log + fmt.Sprintf("notrack meta mark set meta mark or %s %s daddr set %s accept", mark, d.family.Header(), loopback(d.family))
	chain("output-datagrams", knftables.RouteType, knftables.OutputHook, beforeTracking, append(untracked,
		d.match(toAddress, "udp")+away, d.match(toNodePort, "udp")+away)...)
	for name, hook := range map[string]knftables.BaseChainHook{"prerouting": knftables.PreroutingHook, "output": knftables.OutputHook} {
		redirect := fmt.Sprintf(" ct mark set ct mark or %s redirect to :%d", mark, d.connections)
		chain(name, knftables.NATType, hook, beforeProxy, d.match(toAddress, "tcp")+redirect, d.match(toNodePort, "tcp")+redirect)
	}
	// If the node process has exited, no process accepts the connection. In that case, drop its
	// packets instead of rejecting them: the client retransmits until a process accepts the
	// connection.
	tx.Add(&knftables.Chain{Name: "redirected"})
	for _, rule := range []string{"socket transparent 0 accept", "socket transparent 1 accept", "counter drop"} {
		tx.Add(&knftables.Rule{Chain: "redirected", Rule: rule})
	}
	chain("input", knftables.FilterType, knftables.InputHook, knftables.FilterPriority, fmt.Sprintf("tcp flags and (fin|syn|rst|ack) == syn ct mark and %s == %[1]s jump redirected", mark))
}

// loopback returns an address of the loopback device.
func loopback(f ipfamily.Family) netip.Addr {
	return [...]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}[f]
}

// remove deletes the tables of the given IP families.
func remove(ctx context.Context, name string, families []ipfamily.Family) error {
	var errs []error
	for _, family := range families {
		nft, err := open(family, name)
		if err != nil {
			return err
		}
		tx := nft.NewTransaction()
		tx.Add(&knftables.Table{})
		tx.Delete(&knftables.Table{})
		if err := nft.Run(ctx, tx); err != nil {
			errs = append(errs, fmt.Errorf("delete nftables table %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func open(family ipfamily.Family, name string) (knftables.Interface, error) {
	nft, err := knftables.New(family.Table(), name)
	if err != nil {
		return nil, fmt.Errorf("open nftables table %q: %w; install the package nftables", name, err)
	}
	return nft, nil
}
