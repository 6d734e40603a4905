package vxlan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
)

// Flags in an IP family's settings.
const (
	flagTag       = 1 << iota // packets have the sender's network ID; otherwise, they have ID 0
	flagIsolate               // the network IDs of a packet and its destination must be compatible
	flagGate                  // packets from pods on other hosts leave the cluster at this node
	flagMulticast             // multicast packets are sent and accepted
	flagEnabled               // pods have addresses of the IP family
)

// Keys of the IP families' settings.
const (
	settings4 = iota
	settings6
	settingsCount
)

// addressSize is the size, in bytes, of an address in the maps. The programs compare it with
// addresses in packets, so it is in network byte order. An IPv4 address has the form ::ffff:a.b.c.d
// (RFC 4291, 2.5.5.2).
const addressSize = 16

// Field offsets in an IP family's settings and in a peer. A network consists of an address and its
// mask. Host addresses are 4 bytes long. Host addresses and numbers are in host byte order.
const (
	settingsSubnet  = 0
	settingsGateway = settingsSubnet + 2*addressSize
	settingsAddress = settingsGateway + addressSize
	settingsFlags   = settingsAddress + 4
	// settingsReplicas is the offset of the field that contains the number of hosts that receive
	// multicast packets.
	settingsReplicas = settingsFlags + 4
	settingsSize     = settingsReplicas + 8 // a multiple of 8

	// peerGateway is the offset of the node's address in its IPv4 subnet, in network byte order.
	// peerDevice is the offset of the index of the device for packets of direct connections. The
	// index is 0 if the subnet has no direct connections. peerHop is the offset of the node's
	// address, in network byte order. The address is 0 if these packets are encapsulated in VXLAN.
	peerAddress, peerFlags, peerVNI, peerGateway, peerDevice, peerHop = 0, 4, 8, 12, 16, 20

	peerSize = 24
)

// maxEntries is the maximum number of pods on a node, and the maximum number of other hosts. The
// maps use memory only for existing entries.
const maxEntries = 1 << 16

// maxFlows is the maximum number of recorded connections. Above this number, new connections take
// the path through the kernel's network stack.
const maxFlows = 1 << 17

// maxShare is the maximum number of recorded connections of a project's pods on the node.
const maxShare = maxFlows / 4

// maxRemotes is the maximum number of pods on other nodes.
const maxRemotes = 1 << 18

// maxPairs is the maximum number of pairs of a pod and a port for which connections through
// services are recorded.
const maxPairs = 1 << 12

// kernelMaps contains the programs' maps.
type kernelMaps struct {
	settings, peers, pods *ebpf.Map
	// networks contains the networks of all pods.
	networks *ebpf.Map
	// exits contains the peers at which packets from this node's pods leave the cluster. gates maps
	// network IDs to the marks of projects whose packets leave the cluster at this node. owners
	// contains the hosts that can send responses from machines outside the cluster.
	exits, gates, owners *ebpf.Map
	// replicas maps numbers to the hosts that receive multicast packets.
	replicas *ebpf.Map
	// locals contains the pods on this node that have direct connections. flows contains these
	// connections. pairs contains the times at which pods opened connections through services. See
	// Local.
	locals, flows, pairs *ebpf.Map
	// shares contains each project's number of connections. See Local.share.
	shares *ebpf.Map
	// clock contains the time, in seconds, of the last call to Age.
	clock *ebpf.Map
	// remotes holds the network IDs of pods on other nodes in multitenant mode.
	remotes *ebpf.Map
}

// programs contains the programs, and the content of their maps.
type programs struct {
	kernelMaps
	egress, ingress *ebpf.Program // for the VXLAN device
	pod             *ebpf.Program // for the pods' devices
	// segmentEgress and segmentIngress are the programs of devices on network segments. segments
	// contains the indexes of the devices that have the programs. It is nil if other devices might
	// still have a previous process's programs.
	segmentEgress, segmentIngress *ebpf.Program
	segments                      map[int]bool
	// unusable contains the devices that direct connections cannot use, with the reasons.
	unusable map[int]string

	localsOf map[netip.Addr]attachedLocal
	// former contains the addresses of pods that were removed after the last call to Age. Before
	// the first call, isAged is false, and a previous process's pods might have been removed too.
	former       map[netip.Addr]bool
	isAged       bool
	copied       []copiedMap
	isAttached   bool // the devices between hosts have the programs
	remotesOf    map[netip.Addr]uint32
	deviceIndex  int // index of the VXLAN device; 0 before it exists
	peersOf      map[netip.Prefix]Peer
	networksOf   map[netip.Prefix]bool
	podsOf       map[netip.Addr]uint32
	exitsOf      map[netip.Addr]Exit
	gatesOf      map[uint32]uint32
	ownersOf     map[netip.Addr]bool
	replicaCount uint32
}

// load creates the maps and loads the programs. It continues to use the connections of previous
// processes' programs.
func load() (*programs, error) {
	// Kernels before 5.11 count maps as locked memory.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("remove locked memory limit: %w", err)
	}
	p := newPrograms()
	if err := errors.Join(p.createMaps(p.specs()), p.adopt(), p.loadPrograms()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func newPrograms() *programs {
	return &programs{
		peersOf: map[netip.Prefix]Peer{}, networksOf: map[netip.Prefix]bool{}, podsOf: map[netip.Addr]uint32{},
		exitsOf: map[netip.Addr]Exit{}, gatesOf: map[uint32]uint32{}, ownersOf: map[netip.Addr]bool{},
		remotesOf: map[netip.Addr]uint32{},
	}
}

// mapSpec describes one of the maps.
type mapSpec struct {
	target **ebpf.Map
	spec   ebpf.MapSpec
}

// specs returns the maps of this version. See adopt.go for changes to their layouts.
func (p *programs) specs() []mapSpec {
	const dynamic = 1 // BPF_F_NO_PREALLOC
	return []mapSpec{
		{&p.settings, ebpf.MapSpec{Name: "settings", Type: ebpf.Array, KeySize: 4, ValueSize: settingsSize, MaxEntries: settingsCount}},
		{&p.peers, ebpf.MapSpec{Name: "peers", Type: ebpf.LPMTrie, KeySize: 4 + addressSize, ValueSize: peerSize, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.networks, ebpf.MapSpec{Name: "networks", Type: ebpf.LPMTrie, KeySize: 4 + addressSize, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.pods, ebpf.MapSpec{Name: "pods", Type: ebpf.Hash, KeySize: addressSize, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.exits, ebpf.MapSpec{Name: "exits", Type: ebpf.Hash, KeySize: addressSize, ValueSize: peerSize, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.gates, ebpf.MapSpec{Name: "gates", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.owners, ebpf.MapSpec{Name: "owners", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.replicas, ebpf.MapSpec{Name: "replicas", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: maxReplicas}},
		{&p.locals, ebpf.MapSpec{Name: localsMap, Type: ebpf.Hash, KeySize: 4, ValueSize: localSize, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.flows, ebpf.MapSpec{Name: flowsMap, Type: ebpf.Hash, KeySize: flowSize, ValueSize: flowValueSize, MaxEntries: maxFlows, Flags: dynamic}},
		{&p.shares, ebpf.MapSpec{Name: "shares", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.clock, ebpf.MapSpec{Name: "clock", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}},
		{&p.remotes, ebpf.MapSpec{Name: "remotes", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxRemotes, Flags: dynamic}},
		{&p.pairs, ebpf.MapSpec{Name: "pairs", Type: ebpf.LRUHash, KeySize: flowSize, ValueSize: 8, MaxEntries: maxPairs}},
	}
}

func (p *programs) createMaps(specs []mapSpec) error {
	var errs []error
	for _, m := range specs {
		created, err := ebpf.NewMap(&m.spec)
		if err != nil {
			errs = append(errs, fmt.Errorf("create eBPF map %q: %w", m.spec.Name, err))
			continue
		}
		*m.target = created
	}
	return errors.Join(errs...)
}

func (p *programs) loadPrograms() error {
	if slices.Contains(p.maps(), nil) {
		return nil // createMaps has failed
	}
	var errs []error
	for _, program := range []struct {
		target **ebpf.Program
		spec   ebpf.ProgramSpec
	}{
		{&p.egress, ebpf.ProgramSpec{Name: "vxlan_egress", Instructions: egressProgram(&p.kernelMaps)}},
		{&p.ingress, ebpf.ProgramSpec{Name: "vxlan_ingress", Instructions: ingressProgram(&p.kernelMaps)}},
		{&p.pod, ebpf.ProgramSpec{Name: "vxlan_pod", Instructions: podProgram(&p.kernelMaps)}},
		{&p.segmentEgress, ebpf.ProgramSpec{Name: "segment_egress", Instructions: segmentEgressProgram(&p.kernelMaps)}},
		{&p.segmentIngress, ebpf.ProgramSpec{Name: "segment_ingress", Instructions: segmentIngressProgram(&p.kernelMaps)}},
	} {
		program.spec.Type, program.spec.License = ebpf.SchedCLS, "Apache-2.0"
		loaded, err := ebpf.NewProgram(&program.spec)
		if err != nil {
			errs = append(errs, fmt.Errorf("load eBPF program %q: %w", program.spec.Name, err))
			continue
		}
		*program.target = loaded
	}
	return errors.Join(errs...)
}

func (p *programs) maps() []*ebpf.Map {
	return []*ebpf.Map{p.settings, p.peers, p.networks, p.pods, p.exits, p.gates, p.owners, p.replicas, p.locals, p.flows, p.pairs, p.shares, p.clock, p.remotes}
}

// close closes the file descriptors of the programs and maps. Programs that are attached to a
// device remain attached.
func (p *programs) close() {
	p.closeCopied()
	for _, m := range p.maps() {
		if m != nil {
			_ = m.Close()
		}
	}
	for _, program := range []*ebpf.Program{p.egress, p.ingress, p.pod, p.segmentEgress, p.segmentIngress} {
		if program != nil {
			_ = program.Close()
		}
	}
}

func (p *programs) setSettings(d Device, flags uint32) error {
	for number, subnet := range [settingsCount]netip.Prefix{settings4: d.Subnet, settings6: d.SecondSubnet} {
		value := make([]byte, settingsSize) // 0 means not enabled
		if subnet.IsValid() {
			value = p.encodeSettings(d, subnet, flags|flagEnabled)
		}
		if err := p.settings.Put(uint32(number), value); err != nil {
			return fmt.Errorf("write eBPF map of settings: %w", err)
		}
	}
	return nil
}

func (p *programs) encodeSettings(d Device, subnet netip.Prefix, flags uint32) []byte {
	value := make([]byte, settingsSize)
	copy(value[settingsSubnet:], encodeAddress(subnet.Masked().Addr()))
	copy(value[settingsSubnet+addressSize:], net.CIDRMask(length(subnet), 8*addressSize))
	copy(value[settingsGateway:], encodeAddress(gateway(subnet)))
	binary.NativeEndian.PutUint32(value[settingsAddress:], number(d.Address))
	binary.NativeEndian.PutUint32(value[settingsFlags:], flags)
	binary.NativeEndian.PutUint32(value[settingsReplicas:], p.replicaCount)
	return value
}

// encodeAddress returns an address in the form that the maps use.
func encodeAddress(address netip.Addr) []byte {
	octets := address.As16()
	return octets[:]
}

// length returns the prefix length of a network in the form that the maps use.
func length(network netip.Prefix) int {
	return 8*addressSize - network.Addr().BitLen() + network.Bits()
}

func (p *programs) setPeers(peers map[netip.Prefix]Peer) error {
	return set(p.peers, p.peersOf, p.withDevices(peers), encodePrefix, func(peer Peer) any { return peer.encode() })
}

func (p *programs) setNetworks(pods []netip.Prefix) error {
	networks := map[netip.Prefix]bool{}
	for _, network := range pods {
		networks[network] = true
	}
	return set(p.networks, p.networksOf, networks, encodePrefix, func(bool) any { return uint32(1) })
}

// encodePrefix returns a network as a key of the maps.
func encodePrefix(network netip.Prefix) any {
	key := binary.NativeEndian.AppendUint32(nil, uint32(length(network)))
	return append(key, encodeAddress(network.Masked().Addr())...)
}

// withDevices returns a copy of peers to which it adds the nodes' addresses in their IPv4 subnets,
// and the devices for packets of direct connections.
func (p *programs) withDevices(peers map[netip.Prefix]Peer) map[netip.Prefix]Peer {
	result := maps.Clone(peers)
	for subnet, peer := range result {
		device := 0
		switch {
		case peer.External || peer.FixedVNI || !subnet.Addr().Is4():
		case !peer.Routed:
			device = p.deviceIndex
		case peer.Address.Is4() && p.segments[peer.Device]:
			device = peer.Device
		}
		peer.Device, peer.Gateway = device, netip.Addr{}
		if subnet.Addr().Is4() {
			peer.Gateway = gateway(subnet)
		}
		result[subnet] = peer
	}
	return result
}

func (p Peer) encode() []byte {
	value := make([]byte, peerSize)
	binary.NativeEndian.PutUint32(value[peerAddress:], number(p.Address))
	if p.FixedVNI {
		binary.NativeEndian.PutUint32(value[peerFlags:], 1)
		binary.NativeEndian.PutUint32(value[peerVNI:], p.VNI)
	}
	if p.Gateway.Is4() {
		copy(value[peerGateway:], p.Gateway.AsSlice())
	}
	binary.NativeEndian.PutUint32(value[peerDevice:], uint32(p.Device))
	if p.Routed && p.Address.Is4() {
		copy(value[peerHop:], p.Address.AsSlice())
	}
	return value
}

// setExits sets the exits of packets that leave the cluster.
func (p *programs) setExits(n Networks) error {
	owners := map[netip.Addr]bool{}
	for _, exit := range n.Exits {
		owners[exit.Host] = true
	}
	for _, host := range n.Owners {
		owners[host] = true
	}
	return errors.Join(
		set(p.exits, p.exitsOf, n.Exits, func(pod netip.Addr) any { return encodeAddress(pod) },
			func(e Exit) any { return Peer{Address: e.Host, FixedVNI: true, VNI: e.VNI}.encode() }),
		set(p.gates, p.gatesOf, n.Gates, func(vni uint32) any { return vni }, func(mark uint32) any { return mark }),
		set(p.owners, p.ownersOf, owners, func(host netip.Addr) any { return number(host) }, func(bool) any { return uint32(1) }),
	)
}

// setReplicas sets the hosts that receive multicast packets: the hosts that are nodes. Elements of
// this map cannot be deleted. Therefore, the settings contain the number of hosts, and must be
// written after the map.
func (p *programs) setReplicas(peers map[netip.Prefix]Peer) error {
	var hosts []netip.Addr
	for subnet, peer := range peers {
		if !peer.External && subnet.Addr().Is4() {
			hosts = append(hosts, peer.Address)
		}
	}
	slices.SortFunc(hosts, netip.Addr.Compare)
	hosts = hosts[:min(len(hosts), maxReplicas)]
	for i, host := range hosts {
		if err := p.replicas.Put(uint32(i), number(host)); err != nil {
			return fmt.Errorf("add %v to eBPF map: %w", host, err)
		}
	}
	p.replicaCount = uint32(len(hosts))
	return nil
}

func (p *programs) setRemotes(pods map[netip.Addr]uint32) error {
	return set(p.remotes, p.remotesOf, pods, func(address netip.Addr) any { return address.AsSlice() }, func(id uint32) any { return id })
}

func (p *programs) setPods(pods map[netip.Addr]uint32) error {
	return set(p.pods, p.podsOf, pods,
		func(address netip.Addr) any { return encodeAddress(address) }, func(id uint32) any { return id })
}

// set makes a kernel map contain the entries in desired. present is the map's current content.
func set[K, V comparable](kernel *ebpf.Map, present, desired map[K]V, encodeKey func(K) any, encodeValue func(V) any) error {
	for key := range maps.Clone(present) {
		if _, exists := desired[key]; exists {
			continue
		}
		if err := kernel.Delete(encodeKey(key)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("delete %v from eBPF map: %w", key, err)
		}
		delete(present, key)
	}
	for key, value := range desired {
		if existing, exists := present[key]; exists && existing == value {
			continue
		}
		if err := kernel.Put(encodeKey(key), encodeValue(value)); err != nil {
			return fmt.Errorf("add %v to eBPF map: %w", key, err)
		}
		present[key] = value
	}
	return nil
}

// number returns an IPv4 address in host byte order, or 0 if the address is not an IPv4 address.
func number(address netip.Addr) uint32 {
	if !address.Is4() {
		return 0
	}
	return binary.BigEndian.Uint32(address.AsSlice())
}
