// Package multicast delivers pods' multicast packets to the other pods in their group. A group
// consists of the pods in a project, or in projects that share a network.
//
//	pod ── device on its node ──┬── devices of the group's other pods
//	                            └── VXLAN to all hosts ── devices of the group's pods there
//
// The package copies frames at the devices' ingress hook, before the bridge and the IP stack.
// Therefore, neither network policies nor routing apply, and the TTL does not change. Pods without
// a group cannot send multicast packets, because package spoofcheck drops them at the same hook.
// All pods in a group receive all of its packets. The kernel drops packets to multicast addresses
// that a pod has not joined with IGMP or MLD.
//
// Over IPv6, ICMPv6 packets are not delivered. With these packets, a pod could pretend to be a
// router or a neighbor of the group's other pods.
//
// The nftables table `netdev <name>` has a chain for each pod with a group, and a chain for the
// VXLAN device. A packet from a pod is copied if it has the pod's source addresses. A packet from
// the VXLAN device is copied if its sender is a pod in a group. Package vxlan checks that the
// packet comes from that pod's host.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Enabling Multicast.
package multicast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/cni"
)

// Addresses and Addresses6 are the ranges of multicast addresses (RFC 5771, RFC 4291).
const (
	Addresses  = "224.0.0.0/4"
	Addresses6 = "ff00::/8"
)

// Group is a set of pods that receive each other's multicast packets.
type Group struct {
	// Local lists the group's pods on this node.
	Local []Pod
	// Remote lists the addresses of the group's pods on other hosts, of both IP families.
	Remote []netip.Addr
}

// Pod is a pod on this node.
type Pod struct {
	Device        string // host end of its veth
	Address       netip.Addr
	SecondAddress netip.Addr // IPv6; optional
}

// matches returns the matches of the pod's own packets to multicast addresses, one for each of its
// addresses.
func (p Pod) matches() []string {
	mac := cni.HardwareAddress(p.Address)
	list := []string{fmt.Sprintf("ether saddr %s ether type ip ip saddr %s ip daddr %s", mac, p.Address, Addresses)}
	if p.SecondAddress.IsValid() {
		list = append(list, fmt.Sprintf("ether saddr %s ether type ip6 ip6 saddr %s ip6 daddr %s meta l4proto != ipv6-icmp", mac, p.SecondAddress, Addresses6))
	}
	return list
}

// Table is a node's nftables table.
type Table struct {
	nft    knftables.Interface
	tunnel string
	// current describes the state in the kernel. It is empty if the state is unknown.
	current string
}

// Open returns the table with the given name. tunnel is the name of the VXLAN device, which does
// not have to exist.
func Open(name, tunnel string) (*Table, error) {
	nft, err := knftables.New(knftables.NetDevFamily, name)
	if err != nil {
		return nil, fmt.Errorf("open nftables table netdev %q: %w; install the package nftables", name, err)
	}
	return &Table{nft: nft, tunnel: tunnel}, nil
}

// Apply makes the kernel deliver packets within groups. If the groups or the VXLAN device have
// changed, it replaces the table atomically.
func (t *Table) Apply(ctx context.Context, groups []Group) error {
	tunnel, err := t.findTunnel()
	if err != nil {
		return err
	}
	groups = usable(groups)
	desired := fmt.Sprintf("%d %v", tunnel, groups)
	if desired == t.current {
		return nil
	}
	tx := t.nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	if len(groups) > 0 {
		t.add(tx, groups, tunnel != 0)
	}
	t.current = ""
	if err := t.nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write multicast nftables table: %w", err)
	}
	t.current = desired
	return nil
}

// Check verifies that no other program has removed the table. If the table is missing, Check
// discards the recorded state, so that the next Apply writes the table again.
func (t *Table) Check(ctx context.Context) error {
	chains, err := t.nft.List(ctx, "chains")
	if err != nil && !knftables.IsNotFound(err) {
		return fmt.Errorf("list multicast nftables chains: %w", err)
	}
	if len(chains) == 0 {
		t.current = ""
	}
	return nil
}

// findTunnel returns the index of the VXLAN device, or 0 if there is no such device.
func (t *Table) findTunnel() (int, error) {
	link, err := netlinksafe.LinkByName(t.tunnel)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find device %q: %w", t.tunnel, err)
	}
	return link.Attrs().Index, nil
}

// usable returns the groups that have pods on this node, in a fixed order.
func usable(groups []Group) (result []Group) {
	for _, group := range groups {
		if len(group.Local) == 0 {
			continue
		}
		slices.SortFunc(group.Local, func(a, b Pod) int { return a.Address.Compare(b.Address) })
		slices.SortFunc(group.Remote, netip.Addr.Compare)
		result = append(result, group)
	}
	slices.SortFunc(result, func(a, b Group) int { return cmp.Compare(a.Local[0].Device, b.Local[0].Device) })
	return result
}

// priority is the priority of the chains, which run before spoofcheck's chains.
const priority = knftables.BaseChainPriority("-10")

// senders and senders6 are the names of the maps from the addresses of pods on other hosts to the
// pods' groups.
const senders, senders6 = "senders", "senders6"

func (t *Table) add(tx *knftables.Transaction, groups []Group, hasTunnel bool) {
	tx.Add(&knftables.Table{Comment: knftables.PtrTo("multicast of pods")})
	tx.Add(&knftables.Map{Name: senders, Type: "ipv4_addr : verdict"})
	tx.Add(&knftables.Map{Name: senders6, Type: "ipv6_addr : verdict"})
	for i, group := range groups {
		receivers := fmt.Sprintf("group-%d", i)
		tx.Add(&knftables.Chain{Name: receivers})
		for _, pod := range group.Local {
			tx.Add(&knftables.Rule{Chain: receivers, Rule: fmt.Sprintf("iifname != %q dup to %q", pod.Device, pod.Device)})
		}
		for _, address := range group.Remote {
			name := senders
			if address.Is6() {
				name = senders6
			}
			tx.Add(&knftables.Element{Map: name, Key: []string{address.String()}, Value: []string{"goto " + receivers}})
		}
		for _, pod := range group.Local {
			t.addHook(tx, pod.Device)
			for _, match := range pod.matches() {
				if hasTunnel {
					tx.Add(&knftables.Rule{Chain: pod.Device, Rule: match + fmt.Sprintf(" dup to %q", t.tunnel)})
				}
				tx.Add(&knftables.Rule{Chain: pod.Device, Rule: match + " goto " + receivers})
			}
		}
	}
	if hasTunnel {
		t.addHook(tx, t.tunnel)
		tx.Add(&knftables.Rule{Chain: t.tunnel, Rule: "ip daddr " + Addresses + " ip saddr vmap @" + senders})
		tx.Add(&knftables.Rule{Chain: t.tunnel, Rule: "ip6 daddr " + Addresses6 + " meta l4proto != ipv6-icmp ip6 saddr vmap @" + senders6})
	}
}

// addHook adds the chain for a device.
func (t *Table) addHook(tx *knftables.Transaction, device string) {
	tx.Add(&knftables.Chain{
		Name: device, Type: knftables.PtrTo(knftables.FilterType), Hook: knftables.PtrTo(knftables.IngressHook),
		Priority: knftables.PtrTo(priority), Device: &device,
	})
}
