// Package vxlan connects the pods on hosts that do not share a network segment. A Tunnel is a
// node's VXLAN device with its programs.
//
//	pod ── bridge ── route to the subnet of a host ── device ── UDP to that host
//	                                                    │
//	                                     program: host of the subnet,
//	                                     network ID of the pod's project
//
// A packet's network ID (VNI) is the network ID of the sender's project, as in OpenShift 3.11. For
// global projects and nodes, it is 0. A receiver accepts a packet only if
//
//   - the packet comes from the host that has the sender's subnet,
//   - the destination is in this node's subnet, and
//   - in multitenant mode, the network IDs of the packet and the destination are equal, or one of
//     them is 0.
//
// The device itself has no network ID (metadata mode). Two eBPF programs at its tc hooks set and
// check the IDs. The programs' maps contain the subnets of other hosts and the network IDs of this
// node's pods. Therefore, the cost of a packet depends neither on the number of hosts nor on the
// number of pods. If this process exits, the kernel keeps the device, the programs and the maps.
//
// Packets to addresses outside the cluster leave the cluster at the host that has their project's
// egress address (package egressip). They reach this host over a route through the device to
// NextHop. The receiver marks the packets according to their network ID. Only hosts with egress
// addresses send responses from outside.
//
// The TCP packets of direct connections between pods (Local) bypass the kernel's network stack on
// their nodes. A program at a pod's device sends them to this device, and the device's program
// delivers them to the pod. Between hosts that share a network segment, these packets are not
// encapsulated in VXLAN. The program sends them to the host's device on the segment, which also has
// programs (segment.go).
//
// Each of the other nodes receives a copy of a pod's multicast packet. On these nodes, package
// multicast delivers the copy.
//
// Source: OpenShift Container Platform 3.9 Architecture, OpenShift SDN; RFC 7348. The checks have
// the same order as OpenShift 3.11's flows.
package vxlan

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// NextHop returns the gateway of the routes that lead through the device to addresses outside the
// cluster. The gateway is the dummy address of RFC 7600, or an address in the discard-only prefix
// of RFC 6666. The address is only a placeholder, because the device's program determines the host.
func NextHop(family ipfamily.Family) netip.Addr {
	if family == ipfamily.IPv6 {
		return netip.AddrFrom16([16]byte{0: 1, 15: 8})
	}
	return netip.AddrFrom4([4]byte{192, 0, 0, 8})
}

// Overhead is the number of bytes that VXLAN over IPv4 adds to a packet.
const Overhead = 50

// Device contains the settings of the VXLAN device.
type Device struct {
	Name string
	// Absent means that the node has no device, because it exchanges packets with other hosts only
	// on network segments.
	Absent bool
	Port   int
	MTU    int
	// Subnet is the subnet of this node's pods. The device has the subnet's first address.
	Subnet netip.Prefix
	// SecondSubnet is the IPv6 subnet of this node's pods; optional.
	SecondSubnet netip.Prefix
	// Pods lists the networks of all pods.
	Pods []netip.Prefix
	// Address is this node's address, which is the source address of VXLAN packets.
	Address netip.Addr
}

// Peer is another host.
type Peer struct {
	// Address is the host's address.
	Address netip.Addr
	// SecondAddress is the host's IPv6 address, if it has one. The VXLAN device does not use it.
	SecondAddress netip.Addr
	// Gateway is the host's address in its IPv4 subnet. It is required only if the peer's subnet is
	// an IPv6 subnet.
	Gateway netip.Addr
	// Routed means that unicast packets to the host's pods do not pass through the VXLAN device.
	// They pass through the device with the index Device, which is on a network segment that both
	// hosts share.
	Routed bool
	Device int
	// External means that the host is not a node. It responds to ARP requests for its addresses.
	External bool
	// FixedVNI means that packets to the host have the network ID VNI, regardless of the sender's
	// project.
	FixedVNI bool
	VNI      uint32
}

// Networks contains the network IDs of projects on a node.
type Networks struct {
	// Plugin is the cluster's network plugin.
	Plugin string
	// Pods maps the addresses of the node's pods to their network IDs. It omits pods whose network
	// ID is unknown.
	Pods map[netip.Addr]uint32
	// Remotes maps the IPv4 addresses of pods on other nodes to their network IDs in multitenant
	// mode. It omits pods whose network ID is unknown.
	Remotes map[netip.Addr]uint32
	// Exits maps the addresses of this node's pods to the other hosts at which their packets leave
	// the cluster.
	Exits map[netip.Addr]Exit
	// Gates maps the network IDs of projects to the marks for packets that leave the cluster at
	// this node.
	Gates map[uint32]uint32
	// Owners lists hosts that can send responses from machines outside the cluster.
	Owners []netip.Addr
	// Multicast indicates whether nodes exchange pods' multicast packets (package multicast).
	Multicast bool
}

// Exit is the host at which a pod's packets leave the cluster.
type Exit struct {
	// Host is the host's address.
	Host netip.Addr
	// VNI is the network ID of the pod's project.
	VNI uint32
}

// Tunnel is a node's VXLAN device. Its methods can be called concurrently.
type Tunnel struct {
	mu       sync.Mutex
	source   func() (Networks, error)
	created  func()
	programs *programs // nil until Ensure has succeeded
	device   Device
	peers    map[netip.Prefix]Peer
	locals   map[netip.Addr]Local
}

// Follow sets the function that returns the current networks, and a callback that is called when
// the device has been created or replaced. The callback must not call the tunnel's methods.
func (t *Tunnel) Follow(source func() (Networks, error), created func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.source, t.created = source, created
}

// Active reports whether the node has the device.
func (t *Tunnel) Active() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.programs != nil && !t.device.Absent
}

// Refresh makes the programs use the current networks. It is a no-op if there is no device.
func (t *Tunnel) Refresh() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.programs == nil {
		return nil
	}
	return t.refresh(t.programs)
}

// Ensure creates or repairs the device, which connects this node to the given hosts, and the
// programs of the devices on network segments.
func (t *Tunnel) Ensure(device Device, peers map[netip.Prefix]Peer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.programs
	if current == nil {
		var err error
		if current, err = load(); err != nil {
			return fmt.Errorf("set up VXLAN: %w", err)
		}
	}
	t.device, t.peers = device, maps.Clone(peers)
	if err := current.setSegments(t.peers, device.MTU); err != nil {
		slog.Warn("cannot connect pods directly on a network segment; connections use the kernel's network stack", "error", err)
	}
	if err := errors.Join(current.setPeers(t.peers), current.setReplicas(t.peers), t.refresh(current)); err != nil {
		if t.programs == nil {
			current.close()
		}
		return fmt.Errorf("set up VXLAN: %w", err)
	}
	// After a restart, the new process replaces the previous process's programs only when its own
	// programs are complete.
	t.programs = current
	if err := current.repairSegments(); err != nil {
		slog.Warn("cannot connect pods directly on a network segment; connections use the kernel's network stack", "error", err)
		if err := current.setPeers(t.peers); err != nil {
			return fmt.Errorf("set up VXLAN: %w", err)
		}
	}
	if err := t.ensureDevice(current); err != nil {
		return fmt.Errorf("set up VXLAN: %w", err)
	}
	current.isAttached = true
	if t.locals != nil { // otherwise, the pods of the previous process remain
		_ = current.connect(t.locals) // Connect reports the error
	}
	return nil
}

// ensureDevice creates or repairs the device. It sets the device's index in the maps before it
// attaches the programs to the device. Otherwise, the programs would pass packets of open direct
// connections to the network stack.
func (t *Tunnel) ensureDevice(p *programs) error {
	if t.device.Absent {
		p.deviceIndex = 0
		return removeDevice(t.device.Name)
	}
	link, isNew, err := t.device.create()
	if err != nil {
		return err
	}
	p.deviceIndex = link.Attrs().Index
	if err := p.setPeers(t.peers); err != nil {
		return err
	}
	if err := t.device.configure(link, p, t.peers); err != nil {
		return err
	}
	if isNew {
		t.created()
	}
	return nil
}

// Remove removes the device with the given name, if it exists.
func (t *Tunnel) Remove(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.programs != nil {
		t.programs.close()
		t.programs = nil
	}
	// Without rights, the programs that remain on the pods' devices pass all packets to the network
	// stack.
	return errors.Join(revokeFormer(), RemoveSegments(), removeDevice(name))
}

// refresh writes the current networks to the programs' maps.
func (t *Tunnel) refresh(p *programs) error {
	if t.source == nil {
		return errors.New("the project networks are not available yet")
	}
	networks, err := t.source()
	if err != nil {
		return fmt.Errorf("read project networks: %w", err)
	}
	var flags uint32
	if networks.Plugin != networkplugin.Subnet {
		flags |= flagTag
	}
	if networks.Plugin == networkplugin.Multitenant {
		flags |= flagIsolate
	}
	if len(networks.Gates) > 0 {
		flags |= flagGate
	}
	if networks.Multicast {
		flags |= flagMulticast
	}
	return errors.Join(p.setPods(networks.Pods), p.setRemotes(networks.Remotes), p.setExits(networks), p.setNetworks(t.device.Pods), p.setSettings(t.device, flags))
}
