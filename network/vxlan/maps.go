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

// Flags in the settings.
const (
	flagTag       = 1 << iota // packets have the network ID of the sender, or else 0
	flagIsolate               // the network IDs of packet and destination must fit
	flagGate                  // packets of other hosts' pods leave the cluster at this node
	flagMulticast             // multicast packets are sent and accepted
)

// Fields of the settings and of a peer, of 4 bytes each. Addresses that the programs compare with
// those of packets have the byte order of the network, and others that of the host.
const (
	settingsSubnet, settingsMask, settingsGateway, settingsAddress, settingsFlags = 0, 4, 8, 12, 16

	settingsCluster, settingsClusterMask = 20, 24

	settingsReplicas = 28 // number of hosts that get multicast packets

	settingsSize = 32

	peerAddress, peerFlags, peerVNI = 0, 4, 8

	peerSize = 12
)

// maxEntries limits the pods of a node, and the other hosts. The maps use memory for their entries
// only.
const maxEntries = 1 << 16

// kernelMaps are the maps of the programs.
type kernelMaps struct {
	settings, peers, pods *ebpf.Map
	// exits are the hosts at which packets of this node's pods leave the cluster, as peers. gates are
	// the marks of projects that leave it here, by network ID. owners are the hosts in exits.
	exits, gates, owners *ebpf.Map
	// replicas are the hosts that get multicast packets, by number.
	replicas *ebpf.Map
}

// programs are the two programs, and what their maps contain.
type programs struct {
	kernelMaps
	egress, ingress *ebpf.Program
	peersOf         map[netip.Prefix]Peer
	podsOf          map[netip.Addr]uint32
	exitsOf         map[netip.Addr]Exit
	gatesOf         map[uint32]uint32
	ownersOf        map[netip.Addr]bool
	replicaCount    uint32
}

// load creates the maps and loads the programs.
func load() (*programs, error) {
	// Kernels before 5.11 count maps as locked memory.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("remove limit of locked memory: %w", err)
	}
	p := &programs{
		peersOf: map[netip.Prefix]Peer{}, podsOf: map[netip.Addr]uint32{},
		exitsOf: map[netip.Addr]Exit{}, gatesOf: map[uint32]uint32{}, ownersOf: map[netip.Addr]bool{},
	}
	if err := errors.Join(p.createMaps(), p.loadPrograms()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *programs) createMaps() error {
	const dynamic = 1 // BPF_F_NO_PREALLOC
	var errs []error
	for _, m := range []struct {
		target **ebpf.Map
		spec   ebpf.MapSpec
	}{
		{&p.settings, ebpf.MapSpec{Name: "settings", Type: ebpf.Array, KeySize: 4, ValueSize: settingsSize, MaxEntries: 1}},
		{&p.peers, ebpf.MapSpec{Name: "peers", Type: ebpf.LPMTrie, KeySize: 8, ValueSize: peerSize, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.pods, ebpf.MapSpec{Name: "pods", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.exits, ebpf.MapSpec{Name: "exits", Type: ebpf.Hash, KeySize: 4, ValueSize: peerSize, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.gates, ebpf.MapSpec{Name: "gates", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.owners, ebpf.MapSpec{Name: "owners", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: maxEntries, Flags: dynamic}},
		{&p.replicas, ebpf.MapSpec{Name: "replicas", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: maxReplicas}},
	} {
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
	return []*ebpf.Map{p.settings, p.peers, p.pods, p.exits, p.gates, p.owners, p.replicas}
}

// close closes the files of programs and maps. A device that has the programs keeps them.
func (p *programs) close() {
	for _, m := range p.maps() {
		if m != nil {
			_ = m.Close()
		}
	}
	for _, program := range []*ebpf.Program{p.egress, p.ingress} {
		if program != nil {
			_ = program.Close()
		}
	}
}

func (p *programs) setSettings(d Device, flags uint32) error {
	value := make([]byte, settingsSize)
	for at, prefix := range map[int]netip.Prefix{settingsSubnet: d.Subnet, settingsCluster: d.Cluster} {
		copy(value[at:], prefix.Masked().Addr().AsSlice())
		copy(value[at+4:], net.CIDRMask(prefix.Bits(), 32))
	}
	copy(value[settingsGateway:], gateway(d.Subnet).AsSlice())
	binary.NativeEndian.PutUint32(value[settingsAddress:], number(d.Address))
	binary.NativeEndian.PutUint32(value[settingsFlags:], flags)
	binary.NativeEndian.PutUint32(value[settingsReplicas:], p.replicaCount)
	if err := p.settings.Put(uint32(0), value); err != nil {
		return fmt.Errorf("write eBPF map of settings: %w", err)
	}
	return nil
}

func (p *programs) setPeers(peers map[netip.Prefix]Peer) error {
	return set(p.peers, p.peersOf, peers, func(subnet netip.Prefix) any {
		key := make([]byte, 8)
		binary.NativeEndian.PutUint32(key, uint32(subnet.Bits()))
		copy(key[4:], subnet.Masked().Addr().AsSlice())
		return key
	}, func(peer Peer) any {
		return peer.encode()
	})
}

func (p Peer) encode() []byte {
	value := make([]byte, peerSize)
	binary.NativeEndian.PutUint32(value[peerAddress:], number(p.Address))
	if p.FixedVNI {
		binary.NativeEndian.PutUint32(value[peerFlags:], 1)
		binary.NativeEndian.PutUint32(value[peerVNI:], p.VNI)
	}
	return value
}

// setExits sets the ways of packets to the outside.
func (p *programs) setExits(n Networks) error {
	owners := map[netip.Addr]bool{}
	for _, exit := range n.Exits {
		owners[exit.Host] = true
	}
	for _, host := range n.Owners {
		owners[host] = true
	}
	return errors.Join(
		set(p.exits, p.exitsOf, n.Exits, func(pod netip.Addr) any { return pod.AsSlice() },
			func(e Exit) any { return Peer{Address: e.Host, FixedVNI: true, VNI: e.VNI}.encode() }),
		set(p.gates, p.gatesOf, n.Gates, func(vni uint32) any { return vni }, func(mark uint32) any { return mark }),
		set(p.owners, p.ownersOf, owners, func(host netip.Addr) any { return number(host) }, func(bool) any { return uint32(1) }),
	)
}

// setReplicas sets the hosts that get multicast packets: those that are nodes. An element of the
// map cannot be deleted, so the settings have their number, which must be written afterwards.
func (p *programs) setReplicas(peers map[netip.Prefix]Peer) error {
	var hosts []netip.Addr
	for _, peer := range peers {
		if !peer.External {
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

func (p *programs) setPods(pods map[netip.Addr]uint32) error {
	return set(p.pods, p.podsOf, pods,
		func(address netip.Addr) any { return address.AsSlice() }, func(id uint32) any { return id })
}

// set makes a kernel map contain the entries of desired. present is what the map contains.
func set[K, V comparable](kernel *ebpf.Map, present, desired map[K]V, encodeKey func(K) any, encodeValue func(V) any) error {
	for key := range maps.Clone(present) {
		if _, exists := desired[key]; exists {
			continue
		}
		if err := kernel.Delete(encodeKey(key)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("delete %v of eBPF map: %w", key, err)
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

// number returns an IPv4 address in the byte order of the host, or 0.
func number(address netip.Addr) uint32 {
	if !address.Is4() {
		return 0
	}
	return binary.BigEndian.Uint32(address.AsSlice())
}
