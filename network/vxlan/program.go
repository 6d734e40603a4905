package vxlan

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Verdicts of programs at tc hooks.
const (
	verdictNext = -1 // TC_ACT_UNSPEC: the next filter of the hook decides
	verdictPass = 0  // TC_ACT_OK
	verdictDrop = 2  // TC_ACT_SHOT
)

// Offsets of addresses from the start of a frame, and of fields in skb.
const (
	ipv4Source, ipv4Target = 26, 30
	arpSource, arpTarget   = 28, 38
	ipv6Source, ipv6Target = 22, 38
	skbMark, skbProtocol   = 8, 16
	skbDevice              = 40
)

// protocol returns the value of skb->protocol, which is in network byte order.
func protocol(etherType uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType)))
}

// Offsets of fields in the eBPF stack, from the top of that stack. Addresses are in network byte
// order.
const (
	stackSource    = -16
	stackTarget    = -32
	stackIndex     = -36  // key of the settings
	stackPrefix    = -56  // key of the peers and of the networks: length and address
	stackTunnelKey = -104 // struct bpf_tunnel_key
)

// Field offsets in struct bpf_tunnel_key, and its sizes. Its addresses are in host byte order.
const (
	keyVNI, keyRemote, keyLocal = 0, 4, 28
	keySize                     = 44
	keySizeWithoutLocal         = 28 // before Linux 6.0
)

// withoutChecksum is BPF_F_ZERO_CSUM_TX. It is used because some devices and kernels compute wrong
// UDP checksums.
const withoutChecksum = 1 << 1

// egressProgram returns the program for packets that the node sends. It sets the destination's host
// and the sender's network ID.
func egressProgram(m *kernelMaps) asm.Instructions {
	return join(
		addresses(),
		settings(m),
		isCopy(),
		isMulticast("copy"),
		recordStack(m),
		peerOf(m, stackTarget, "exit"),
		asm.Instructions{
			asm.Mov.Reg(asm.R9, asm.R0), // R9 holds the peer
			asm.Mov.Imm(asm.R7, 0),      // R7 holds the network ID
			asm.LoadMem(asm.R1, asm.R9, peerFlags, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "by sender"),
			asm.LoadMem(asm.R7, asm.R9, peerVNI, asm.Word),
			asm.Ja.Label("send"),
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word).WithSymbol("by sender"),
			asm.And.Imm(asm.R1, flagTag),
			asm.JEq.Imm(asm.R1, 0, "send"),
		},
		podOf(m, stackSource),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "not a pod"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
			asm.Ja.Label("send"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("not a pod"),
		},
		// Packets from the node have network ID 0. Check the source address, because the packet
		// could also come from a new pod whose network ID is still unknown.
		isNode(stackSource, "not the node"),
		asm.Instructions{
			asm.Ja.Label("send"),
			// Other packets are responses from other machines to packets that left the cluster at
			// this node.
			asm.LoadMem(asm.R2, asm.R8, settingsFlags, asm.Word).WithSymbol("not the node"),
			asm.And.Imm(asm.R2, flagGate),
			asm.JEq.Imm(asm.R2, 0, "drop"),
		},
		isOutside(m),
		asm.Instructions{
			asm.Ja.Label("send"),
			// The destination is outside the cluster.
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_ARP), "drop").WithSymbol("exit"),
		},
		lookup(m.exits.FD(), stackSource),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.Mov.Reg(asm.R9, asm.R0),
			asm.LoadMem(asm.R7, asm.R9, peerVNI, asm.Word),
			// Clear the mark. Otherwise, the encapsulated packet would also be routed through this
			// device.
			asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
		},
		send(),
		copies(m),
		ending(verdictPass),
	)
}

// send sets the tunnel key from the peer in R9 and the network ID in R7.
func send() asm.Instructions {
	return join(
		asm.Instructions{asm.LoadMem(asm.R2, asm.R9, peerAddress, asm.Word).WithSymbol("send")},
		tunnelKey("pass"),
		asm.Instructions{asm.Ja.Label("drop")},
	)
}

// tunnelKey sets the tunnel key from the host address in R2 and the network ID in R7, and jumps to
// a label. If there is an error, it continues with the next instruction. Kernels before 6.0 do not
// accept the sender's address. These kernels choose the sender's address according to the route.
func tunnelKey(done string) asm.Instructions {
	list := asm.Instructions{asm.Mov.Imm(asm.R1, 0)}
	for offset := int16(0); offset < keySize; offset += 4 {
		list = append(list, asm.StoreMem(asm.RFP, stackTunnelKey+offset, asm.R1, asm.Word))
	}
	list = append(list,
		asm.StoreMem(asm.RFP, stackTunnelKey+keyVNI, asm.R7, asm.Word),
		asm.StoreMem(asm.RFP, stackTunnelKey+keyRemote, asm.R2, asm.Word),
		asm.LoadMem(asm.R1, asm.R8, settingsAddress, asm.Word),
		asm.StoreMem(asm.RFP, stackTunnelKey+keyLocal, asm.R1, asm.Word),
	)
	for _, size := range []int32{keySize, keySizeWithoutLocal} {
		list = append(list, join(
			asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6)},
			stackPointer(asm.R2, stackTunnelKey),
			asm.Instructions{
				asm.Mov.Imm(asm.R3, size), asm.Mov.Imm(asm.R4, withoutChecksum), asm.FnSkbSetTunnelKey.Call(),
				asm.JEq.Imm(asm.R0, 0, done),
			},
		)...)
	}
	return list
}

// ingressProgram returns the program for packets that arrive from other hosts.
func ingressProgram(m *kernelMaps) asm.Instructions {
	return join(
		addresses(),
		settings(m),
		asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6)},
		stackPointer(asm.R2, stackTunnelKey),
		asm.Instructions{
			asm.Mov.Imm(asm.R3, keySizeWithoutLocal), asm.Mov.Imm(asm.R4, 0), asm.FnSkbGetTunnelKey.Call(),
			asm.JNE.Imm(asm.R0, 0, "drop"), // this also drops VXLAN packets over IPv6
		},
		// Check that the packet comes from the host that has the sender's subnet.
		peerOf(m, stackSource, "response"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R0, peerAddress, asm.Word),
			asm.LoadMem(asm.R2, asm.RFP, stackTunnelKey+keyRemote, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, "drop"),
			asm.LoadMem(asm.R1, asm.R0, peerDevice, asm.Word),
			asm.StoreMem(asm.RFP, stackPath, asm.R1, asm.Word),
		},
		// If the destination is a multicast address, package multicast delivers the packet.
		isMulticast("multicast"),
		// Check that the destination is in this node's subnet.
		isLocal(stackTarget, "gate"),
		asm.Instructions{
			// Check that the network IDs are compatible.
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_ARP), "pass"),
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word),
			asm.And.Imm(asm.R1, flagIsolate),
			asm.JEq.Imm(asm.R1, 0, "deliver"),
			asm.LoadMem(asm.R7, asm.RFP, stackTunnelKey+keyVNI, asm.Word),
			asm.JEq.Imm(asm.R7, 0, "deliver"),
		},
		isNode(stackTarget, "not for the node"),
		asm.Instructions{
			asm.Ja.Label("pass"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("not for the node"),
		},
		podOf(m, stackTarget),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "deliver"),
			asm.JEq.Reg(asm.R1, asm.R7, "deliver"),
			asm.Ja.Label("drop"),
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word).WithSymbol("multicast"),
			asm.And.Imm(asm.R1, flagMulticast),
			asm.JNE.Imm(asm.R1, 0, "pass"),
			asm.Ja.Label("drop"),
		},
		gate(m),
		response(m),
		deliver(m),
		ending(verdictPass),
	)
}

// gate accepts packets to outside addresses from projects that have an egress address on this node.
// It also sets the packet type to "addressed to this host", because the sender does not set this
// node's MAC address as the destination.
func gate(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_ARP), "drop").WithSymbol("gate"),
			// IPv6 multicast addresses start with ff. IPv4 addresses start with 00, because they
			// have the form ::ffff:a.b.c.d.
			asm.LoadMem(asm.R1, asm.RFP, stackTarget, asm.Byte),
			asm.JEq.Imm(asm.R1, 0xff, "drop"),
		},
		lookup(m.gates.FD(), stackTunnelKey+keyVNI),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, unix.PACKET_HOST), asm.FnSkbChangeType.Call(),
			asm.JNE.Imm(asm.R0, 0, "drop"),
			asm.Ja.Label("pass"),
		},
	)
}

// response accepts packets from other machines through hosts that have egress addresses.
func response(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_ARP), "drop").WithSymbol("response"),
		},
		isOutside(m),
		lookup(m.owners.FD(), stackTunnelKey+keyRemote),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
		},
		isLocal(stackTarget, "drop"),
		asm.Instructions{asm.Ja.Label("pass")},
	)
}

// isOutside drops the packet if its source is an address in a pod network.
func isOutside(m *kernelMaps) asm.Instructions {
	return join(
		lookupPrefix(m.networks.FD(), stackSource),
		asm.Instructions{asm.JNE.Imm(asm.R0, 0, "drop")},
	)
}

// isLocal jumps to a label unless an address is in this node's subnet. It changes R1 and R2.
func isLocal(address int16, missing string) (list asm.Instructions) {
	for at := int16(0); at < addressSize; at += 8 {
		list = append(list,
			asm.LoadMem(asm.R1, asm.RFP, address+at, asm.DWord),
			asm.LoadMem(asm.R2, asm.R8, settingsSubnet+addressSize+at, asm.DWord),
			asm.And.Reg(asm.R1, asm.R2),
			asm.LoadMem(asm.R2, asm.R8, settingsSubnet+at, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, missing),
		)
	}
	return list
}

// isNode jumps to a label unless an address is this node's. It changes R1 and R2.
func isNode(address int16, missing string) (list asm.Instructions) {
	for at := int16(0); at < addressSize; at += 8 {
		list = append(list,
			asm.LoadMem(asm.R1, asm.RFP, address+at, asm.DWord),
			asm.LoadMem(asm.R2, asm.R8, settingsGateway+at, asm.DWord),
			asm.JNE.Reg(asm.R1, asm.R2, missing),
		)
	}
	return list
}

// addresses stores the addresses of an IP or ARP packet, and the key of its IP family's settings.
// It drops other packets. R6 holds the packet, and R7 holds its protocol.
func addresses() asm.Instructions {
	family := func(number int32) asm.Instructions {
		return asm.Instructions{asm.Mov.Imm(asm.R1, number), asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word)}
	}
	// An IPv4 address follows the prefix ::ffff.
	prefix := asm.Instructions{asm.Mov.Imm(asm.R1, 0)}
	for _, address := range []int16{stackSource, stackTarget} {
		prefix = append(prefix, asm.StoreMem(asm.RFP, address, asm.R1, asm.DWord))
	}
	prefix = append(prefix, asm.Mov.Imm(asm.R1, int32(binary.NativeEndian.Uint32([]byte{0, 0, 0xff, 0xff}))))
	for _, address := range []int16{stackSource, stackTarget} {
		prefix = append(prefix, asm.StoreMem(asm.RFP, address+8, asm.R1, asm.Word))
	}
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, skbProtocol, asm.Word),
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_IPV6), "IPv6"),
			asm.Mov.Imm(asm.R8, ipv4Source), asm.Mov.Imm(asm.R9, ipv4Target),
			asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_IP), "IPv4"),
			asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_ARP), "drop"),
			asm.Mov.Imm(asm.R8, arpSource), asm.Mov.Imm(asm.R9, arpTarget),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("IPv4"),
		},
		prefix,
		family(settings4),
		copyBytes(asm.Mov.Reg(asm.R2, asm.R8), stackSource+12, 4),
		copyBytes(asm.Mov.Reg(asm.R2, asm.R9), stackTarget+12, 4),
		asm.Instructions{asm.Ja.Label("loaded"), asm.Mov.Imm(asm.R1, 0).WithSymbol("IPv6")},
		family(settings6),
		copyBytes(asm.Mov.Imm(asm.R2, ipv6Source), stackSource, addressSize),
		copyBytes(asm.Mov.Imm(asm.R2, ipv6Target), stackTarget, addressSize),
		asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol("loaded")},
	)
}

// copyBytes copies bytes from the packet to the eBPF stack. The instruction offset sets R2 to their
// offset.
func copyBytes(offset asm.Instruction, to int16, size int32) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), offset},
		stackPointer(asm.R3, to),
		asm.Instructions{asm.Mov.Imm(asm.R4, size), asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "drop")},
	)
}

// settings sets R8 to the settings of the packet's IP family. It drops a packet if pods have no
// addresses in its family.
func settings(m *kernelMaps) asm.Instructions {
	return join(
		lookup(m.settings.FD(), stackIndex),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"), asm.Mov.Reg(asm.R8, asm.R0),
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word),
			asm.And.Imm(asm.R1, flagEnabled),
			asm.JEq.Imm(asm.R1, 0, "drop"),
		},
	)
}

// peerOf sets R0 to the host that has the subnet of an address. If there is no such host, it jumps
// to a label.
func peerOf(m *kernelMaps, address int16, missing string) asm.Instructions {
	return join(
		lookupPrefix(m.peers.FD(), address),
		asm.Instructions{asm.JEq.Imm(asm.R0, 0, missing)},
	)
}

// lookupPrefix sets R0 to the value of the network that contains an address, or to 0.
func lookupPrefix(fd int, address int16) asm.Instructions {
	list := asm.Instructions{asm.Mov.Imm(asm.R1, 8*addressSize), asm.StoreMem(asm.RFP, stackPrefix, asm.R1, asm.Word)}
	for at := int16(0); at < addressSize; at += 4 {
		list = append(list, asm.LoadMem(asm.R1, asm.RFP, address+at, asm.Word), asm.StoreMem(asm.RFP, stackPrefix+4+at, asm.R1, asm.Word))
	}
	return join(list, lookup(fd, stackPrefix))
}

// podOf sets R0 to the network ID of a pod on this node, or to 0.
func podOf(m *kernelMaps, address int16) asm.Instructions { return lookup(m.pods.FD(), address) }

func lookup(fd int, key int16) asm.Instructions {
	return join(asm.Instructions{asm.LoadMapPtr(asm.R1, fd)}, stackPointer(asm.R2, key), asm.Instructions{asm.FnMapLookupElem.Call()})
}

func stackPointer(register asm.Register, offset int16) asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(register, asm.RFP), asm.Add.Imm(register, int32(offset))}
}

// ending returns the instructions at the labels drop and pass. pass is the verdict at the label
// pass.
func ending(pass int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, verdictDrop).WithSymbol("drop"), asm.Return(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"), asm.Return(),
	}
}

func join(parts ...asm.Instructions) (list asm.Instructions) {
	for _, part := range parts {
		list = append(list, part...)
	}
	return list
}
