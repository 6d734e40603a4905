// Package vxlan connects the pods of hosts that do not share a network segment. A Tunnel is the
// VXLAN device of a node with its programs.
//
//	pod ── bridge ── route to the subnet of a host ── device ── UDP to that host
//	                                                    │
//	                                     program: host of the subnet,
//	                                     network ID of the pod's project
//
// The network ID of a packet (VNI) is the network ID of the sender's project, as in OpenShift 3.11:
// 0 for global projects and for nodes. A receiver accepts a packet only if
//
//   - the packet comes from the host that has the subnet of the sender,
//   - the destination is in the subnet of this node, and
//   - in multitenant mode, the network ID of packet or destination is 0, or both are equal.
//
// The device itself has no network ID (metadata mode). Two eBPF programs at its tc hooks set and
// check the IDs. Their maps contain the subnets of other hosts and the network IDs of this node's
// pods, so the cost of a packet depends neither on the number of hosts nor of pods. If this
// process ends, the kernel keeps device, programs and maps.
//
// Packets to the outside leave the cluster at the host with the egress address of their project
// (package egressip). They get there over a route through the device to NextHop. The receiver marks
// the packets by their network ID. Only the hosts with egress addresses send the responses.
//
// Each other node gets a copy of a pod's multicast packet. Package multicast delivers it there.
//
// Source: OpenShift Container Platform 3.9 Architecture, OpenShift SDN; RFC 7348. The checks have
// the order of OpenShift 3.11's flows.
package vxlan

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// Port is the UDP port of VXLAN if the ClusterNetwork names none.
const Port = 4789

// NextHop returns the gateway of routes to the outside through the device: the dummy address of RFC
// 7600. The program of the device finds the host.
func NextHop() netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 0, 8}) }

// Overhead is the number of bytes that VXLAN over IPv4 adds to a packet.
const Overhead = 50

// Device contains the settings of the device.
type Device struct {
	Name string
	Port int
	MTU  int
	// Subnet contains the addresses of this node's pods. The device has the first one.
	Subnet netip.Prefix
	// Cluster contains the addresses of all pods.
	Cluster netip.Prefix
	// SecondSubnet and SecondCluster are the corresponding IPv6 networks; optional.
	SecondSubnet, SecondCluster netip.Prefix
	// Address is the address of this node, from which it sends.
	Address netip.Addr
}

// Peer is another host.
type Peer struct {
	// Address is the address of the host.
	Address netip.Addr
	// SecondAddress is its IPv6 address, if it has one. The VXLAN device does not use it.
	SecondAddress netip.Addr
	// Gateway is the host's address in its IPv4 subnet. Optional for that subnet.
	Gateway netip.Addr
	// External means that the host is not a node. It responds to ARP requests for its addresses.
	External bool
	// FixedVNI means that packets to the host have the ID VNI, regardless of the sender's project.
	FixedVNI bool
	VNI      uint32
}

// Networks are the network IDs of projects on a node.
type Networks struct {
	// Plugin is the network plugin of the cluster.
	Plugin string
	// Pods are the network IDs of the node's pods. A pod without a known network ID is missing.
	Pods map[netip.Addr]uint32
	// Exits define how packets of this node's pods leave the cluster at other hosts.
	Exits map[netip.Addr]Exit
	// Gates are the marks that packets to the outside get if they leave the cluster at this node, by
	// the network ID of their project.
	Gates map[uint32]uint32
	// Owners are hosts that can send responses of machines outside of the cluster.
	Owners []netip.Addr
	// Multicast means that nodes exchange multicast packets of pods (package multicast).
	Multicast bool
}

// Exit is the host at which packets of a pod leave the cluster.
type Exit struct {
	// Host is the address of the host.
	Host netip.Addr
	// VNI is the network ID of the pod's project.
	VNI uint32
}

// Tunnel is the VXLAN device of a node. Its methods can be called concurrently.
type Tunnel struct {
	mu       sync.Mutex
	source   func() (Networks, error)
	created  func()
	programs *programs // nil without a device
	device   Device
	peers    map[netip.Prefix]Peer
}

// Follow sets the function that returns the current networks, and a callback that runs when the
// device has been created or replaced. The callback must not call methods of the tunnel.
func (t *Tunnel) Follow(source func() (Networks, error), created func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.source, t.created = source, created
}

// Active reports whether the node has the device.
func (t *Tunnel) Active() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.programs != nil
}

// Refresh makes the programs use the current networks. It does nothing without a device.
func (t *Tunnel) Refresh() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.programs == nil {
		return nil
	}
	return t.refresh(t.programs)
}

// Ensure creates or repairs the device, which connects to the given hosts.
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
	if err := errors.Join(current.setPeers(t.peers), current.setReplicas(t.peers), t.refresh(current)); err != nil {
		if t.programs == nil {
			current.close()
		}
		return fmt.Errorf("set up VXLAN: %w", err)
	}
	// A restarted process replaces the programs of the previous one when its own are complete.
	t.programs = current
	isNew, err := device.ensure(current, t.peers)
	if err != nil {
		return fmt.Errorf("set up VXLAN: %w", err)
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
	return removeDevice(name)
}

// refresh writes the current networks to the maps of programs.
func (t *Tunnel) refresh(p *programs) error {
	if t.source == nil {
		return errors.New("the networks of projects are not available yet")
	}
	networks, err := t.source()
	if err != nil {
		return fmt.Errorf("read networks of projects: %w", err)
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
	return errors.Join(p.setPods(networks.Pods), p.setExits(networks), p.setSettings(t.device, flags))
}
