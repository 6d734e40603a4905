// Package spoofcheck drops a pod's frames that do not come from the pod's own addresses.
//
// A pod can have raw sockets, so it can send any frame. Its frames pass if they are
//
//   - IP packets from the pod's MAC and IP addresses to the gateway's MAC address, or
//   - ARP packets from the same addresses about the gateway's address.
//
// All other frames are dropped:
//
//   - frames from other source addresses, and frames to other pods,
//   - multicasts and broadcasts,
//   - IPv6 packets from pods without an IPv6 address,
//   - messages that IPv6 hosts and routers send about themselves (neighbor discovery, RFC 4861),
//   - frames with VLAN tags, and frames of bridge protocols.
//
// Pods do not need these frames, because the gateway is their only neighbor (see package cni).
// Before this check, package multicast copies the pods' multicast packets.
//
// The table is `netdev <name>`. Each pod has a chain in the table, at the ingress hook of the pod's
// device on the host. The chain is named after the device. The hook precedes the bridge, its
// address learning, and the firewall for bridged frames. Therefore, the check does not depend on
// what the device is connected to. Programs on the same device (tc, tcx) run before the hook. A
// program that redirects frames must check their source itself.
package spoofcheck

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

// Pod is a pod whose frames are checked.
type Pod struct {
	Device         string // host end of the pod's veth
	Address        netip.Addr
	SecondAddress  netip.Addr // IPv6; optional
	MAC            net.HardwareAddr
	GatewayAddress netip.Addr
	GatewayMAC     net.HardwareAddr
}

// Check creates or replaces a pod's chain. The pod's device must exist.
func Check(table string, p Pod) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	policy := nftables.ChainPolicyDrop
	chain := conn.AddChain(&nftables.Chain{
		Table: conn.AddTable(tableOf(table)), Name: p.Device, Device: p.Device,
		Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress, Priority: nftables.ChainPriorityFilter, Policy: &policy,
	})
	conn.FlushChain(chain)
	for _, rule := range p.rules() {
		conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: rule, UserData: p.comment()})
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("write chain %q of nftables table netdev %q: %w", p.Device, table, err)
	}
	return nil
}

// Remove removes a device's chain. It ignores a missing chain, because kernels before 6.16 remove
// the chain with the device.
func Remove(table, device string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	conn.DelChain(&nftables.Chain{Table: tableOf(table), Name: device})
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove chain %q of nftables table netdev %q: %w", device, table, err)
	}
	return nil
}

// Chains maps devices to the rules in their chains.
type Chains map[string][]*nftables.Rule

// List returns a table's chains. It returns nil if the table does not exist.
func List(table string) (Chains, error) {
	conn, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	defer func() { _ = conn.CloseLasting() }()
	all, err := conn.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return nil, fmt.Errorf("list nftables chains of family netdev: %w", err)
	}
	chains := Chains{}
	for _, chain := range all {
		if chain.Table.Name != table {
			continue
		}
		rules, err := conn.GetRules(tableOf(table), chain)
		if err != nil {
			return nil, fmt.Errorf("list chain %q of nftables table netdev %q: %w", chain.Name, table, err)
		}
		chains[chain.Name] = rules
	}
	return chains, nil
}

// Has reports whether the pod's chain has the rules that Check writes.
func (c Chains) Has(p Pod) bool {
	rules := c[p.Device]
	for _, rule := range rules {
		if !bytes.Equal(rule.UserData, p.comment()) {
			return false
		}
	}
	return len(rules) == len(p.rules())
}

func tableOf(name string) *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyNetdev, Name: name}
}

// comment returns the comment that identifies the pod's rules.
func (p Pod) comment() []byte {
	text := p.Address.String() + " via " + p.GatewayAddress.String()
	if p.SecondAddress.IsValid() {
		text = p.SecondAddress.String() + " and " + text
	}
	return userdata.AppendString(nil, userdata.TypeComment, text)
}
