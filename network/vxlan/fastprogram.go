package vxlan

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// fastMark marks a packet from podProgram while it is sent through the device. Package egressip
// does not use this bit.
const fastMark = 1 << 26

// skbVLAN is the offset of the skb field that specifies whether the frame had a VLAN tag.
const skbVLAN = 20

// Offsets of fields in the eBPF stack, from the top of that stack.
const (
	stackValue = -128 // a connection
	stackFrame = -178 // headers of the packet; the IP header is aligned
	stackIP    = stackFrame + 14
	stackMACs  = -194 // new destination and source of the frame
	stackTime  = -208
	stackPair  = -224 // a connection's key without the local port
	stackZero  = -228 // key of the clock
	stackPath  = -232 // index of the device for direct packets of the other node
	stackShare = -236 // key of the project's share
	stackHop   = -256 // struct bpf_redir_neigh
	stackFlow  = -120 // a connection's key
	frameSize  = 48   // Ethernet, IPv4, and TCP up to its flags
)

// Field offsets in the IPv4 header with the TCP header that follows it.
const (
	ipFragment, ipProtocol, ipSource, ipTarget = 6, 9, 12, 16
	tcpSource, tcpTarget, tcpFlags             = 20, 22, 33
)

// TCP flags.
const (
	flagFIN = 1 << 0
	flagSYN = 1 << 1
	flagRST = 1 << 2
	flagACK = 1 << 4
)

// Field offsets in a key of the map flows, and the size of the key. All fields are in network byte
// order.
const (
	flowLocal, flowRemote, flowRemotePort, flowLocalPort = 0, 4, 8, 10
	flowSize                                             = 12
)

// Field offsets in a value of the map flows, and the size of the value. The time is the clock's
// value at the connection's last packet.
const (
	flowState, flowTime = 0, 4
	flowValueSize       = 8
)

// States of connections. The other bits record whether there was a response, and which packets have
// ended the connection.
const (
	openedHere  = 1 // by a pod on this node
	openedThere = 2 // by its peer
	viaStack    = 3 // all packets pass the kernel's network stack
	stateMask   = 0xff
	closedHere  = 1 << 8
	closedThere = 1 << 9
	closedReset = 1 << 10
	answered    = 1 << 11
)

// Field offsets in a value of the map locals, and the size of the value.
const (
	localDevice, localRights, localShare = 0, 4, 8
	localSize                            = 12
)

// pairPeriod is the period, in nanoseconds, that begins when a pod opens a connection to a port
// through a service. During this period, the pod opens no direct connections to that port.
const pairPeriod = 600e9

// podProgram returns the program for packets that a pod sends. If the pod's connection permits it,
// the program sends packets to pods on other nodes directly. It sends them to the VXLAN device, or
// to the device on the network segment that both nodes share. All other packets take the path
// through the kernel's network stack. Package spoofcheck does not see the packets of direct
// connections, so the program checks their source.
func podProgram(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R7, asm.R6, skbProtocol, asm.Word),
			asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_IP), "pass"),
			asm.LoadMem(asm.R1, asm.R6, skbVLAN, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "pass"),
			asm.Mov.Imm(asm.R1, settings4), asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word),
		},
		lookup(m.settings.FD(), stackIndex),
		asm.Instructions{asm.JEq.Imm(asm.R0, 0, "pass"), asm.Mov.Reg(asm.R8, asm.R0)},
		tcpFrame("pass"),
		sameHalf(stackFrame, -1, "pass"),
		sameHalf(stackFrame+6, -1, "pass"),
		sameHalf(stackFrame+8, stackIP+ipSource, "pass"),
		sameHalf(stackFrame+10, stackIP+ipSource+2, "pass"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackFrame+2, asm.Word),
			asm.LoadMem(asm.R2, asm.R8, settingsGateway+addressSize-4, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, "pass"),
		},
		lookup(m.locals.FD(), stackIP+ipSource),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R0, localDevice, asm.Word),
			asm.LoadMem(asm.R2, asm.R6, skbDevice, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, "pass"),
			asm.LoadMem(asm.R9, asm.R0, localRights, asm.Word),
			asm.LoadMem(asm.R1, asm.R0, localShare, asm.Word),
			asm.StoreMem(asm.RFP, stackShare, asm.R1, asm.Word),
		},
		// Find the other node.
		mapped(stackTarget, stackIP+ipTarget),
		peerOf(m, stackTarget, "pass"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R0, peerDevice, asm.Word), asm.JEq.Imm(asm.R1, 0, "pass"),
			asm.StoreMem(asm.RFP, stackPath, asm.R1, asm.Word),
		},
		nextHop(),
		macs(asm.R0, peerGateway),
		mapped(stackSource, stackIP+ipSource),
		compatible(m, stackSource, stackIP+ipTarget),
		flowKey(stackIP+ipSource, stackIP+ipTarget, stackIP+tcpSource, stackIP+tcpTarget),
		readClock(m),
		asm.Instructions{
			asm.LoadMem(asm.R7, asm.RFP, stackIP+tcpFlags, asm.Byte),
			asm.Mov.Reg(asm.R1, asm.R7), asm.And.Imm(asm.R1, flagSYN|flagACK),
			asm.JNE.Imm(asm.R1, flagSYN, "open"),
			asm.Mov.Reg(asm.R1, asm.R9), asm.And.Imm(asm.R1, int32(RightOpen)),
			asm.JEq.Imm(asm.R1, 0, "refuse"),
		},
		pairKey(),
		lookup(m.pairs.FD(), stackPair),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "new"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
			asm.FnKtimeGetNs.Call(),
			asm.Sub.Reg(asm.R0, asm.R7),
			asm.LoadImm(asm.R1, pairPeriod, asm.DWord),
			asm.JLT.Reg(asm.R0, asm.R1, "refuse"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("new"),
		},
		connection(m, openedHere, closedHere, "redirect"),
		asm.Instructions{
			asm.JEq.Imm(asm.R2, openedThere, "redirect"),
			asm.JNE.Imm(asm.R2, openedHere, "pass"),
		},
		keep(RightKeepOpened, MoveOpened),
		asm.Instructions{
			asm.Mov.Imm(asm.R1, fastMark).WithSymbol("redirect"), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, stackHop, asm.Word), asm.JNE.Imm(asm.R1, 0, "segment"),
		},
		writeMACs(),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackPath, asm.Word),
			asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return(),
		},
		toSegment(),
		ending(verdictNext), // the next filter can be a filter of package shaping
	)
}

// compatible applies to multitenant mode. It passes the packet to the network stack if a pod's
// network ID is unknown. It also does so if the two pods' network IDs differ and neither of them is
// 0. One pod is on this node, and the other pod is on another node. compatible changes R7.
func compatible(m *kernelMaps, local, remote int16) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word),
			asm.And.Imm(asm.R1, flagIsolate),
			asm.JEq.Imm(asm.R1, 0, "compatible"),
		},
		podOf(m, local),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
			asm.JEq.Imm(asm.R7, 0, "compatible"),
		},
		lookup(m.remotes.FD(), remote),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.JEq.Imm(asm.R1, 0, "compatible"),
			asm.JNE.Reg(asm.R1, asm.R7, "pass"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("compatible"),
		},
	)
}

// mapped converts the IPv4 address at an offset in the eBPF stack to the form that the maps use. It
// stores the result in the eBPF stack.
func mapped(to, address int16) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, to, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(binary.NativeEndian.Uint32([]byte{0, 0, 0xff, 0xff}))), asm.StoreMem(asm.RFP, to+8, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, address, asm.Word), asm.StoreMem(asm.RFP, to+12, asm.R1, asm.Word),
	}
}

// connection sets the state of a new connection, and then continues at the label opened. At the
// label "refuse", it sets the state of a new connection that takes the path through the network
// stack. At the label "open", it sets R2 to the state of an existing connection. R7 holds the
// packet's flags. If the connection is unknown or cannot be recorded, connection passes the packet
// to the network stack.
func connection(m *kernelMaps, state, closed int32, opened string) asm.Instructions {
	return join(
		count(m, "new connection"),
		record(m, state),
		asm.Instructions{
			asm.JNE.Imm(asm.R0, 0, "pass"), // the map is full
			asm.Ja.Label(opened),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("refuse"),
		},
		count(m, "refused connection"),
		record(m, viaStack),
		asm.Instructions{
			asm.Ja.Label("pass"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("open"),
		},
		lookup(m.flows.FD(), stackFlow),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R1, asm.RFP, stackValue+flowTime, asm.Word), asm.StoreMem(asm.R0, flowTime, asm.R1, asm.Word),
			asm.LoadMem(asm.R2, asm.R0, flowState, asm.Word),
			asm.Or.Imm(asm.R2, answered),
			asm.Mov.Reg(asm.R1, asm.R7), asm.And.Imm(asm.R1, flagFIN|flagRST),
			asm.JEq.Imm(asm.R1, 0, "state"),
			asm.And.Imm(asm.R1, flagRST),
			asm.JEq.Imm(asm.R1, 0, "FIN"),
			asm.Or.Imm(asm.R2, closedReset),
			asm.Ja.Label("state"),
			asm.Or.Imm(asm.R2, closed).WithSymbol("FIN"),
			asm.StoreMem(asm.R0, flowState, asm.R2, asm.Word).WithSymbol("state"),
			asm.And.Imm(asm.R2, stateMask),
		},
	)
}

// count counts a connection in the project's share unless the connection is already recorded. If
// the share is used up, count passes the packet to the network stack. Otherwise, it continues at
// label, which it defines.
func count(m *kernelMaps, label string) asm.Instructions {
	return join(
		lookup(m.flows.FD(), stackFlow),
		asm.Instructions{asm.JNE.Imm(asm.R0, 0, label)},
		lookup(m.shares.FD(), stackShare),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.JGE.Imm(asm.R1, maxShare, "pass"),
			asm.Mov.Imm(asm.R1, 1),
			asm.AddAtomic.Mem(asm.R0, asm.R1, asm.Word, 0),
			asm.Mov.Imm(asm.R1, 0).WithSymbol(label),
		},
	)
}

// keep passes a packet from the side that opened a connection to the network stack, unless the pod
// has the given right. If the pod moves its connections to the network stack, keep changes the
// state of the connection to which R0 points. R9 holds the pod's rights.
func keep(right, move Rights) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R9), asm.And.Imm(asm.R1, int32(right)),
		asm.JNE.Imm(asm.R1, 0, "keep"),
		asm.And.Imm(asm.R9, int32(move)),
		asm.JEq.Imm(asm.R9, 0, "pass"),
		asm.Mov.Imm(asm.R1, viaStack), asm.StoreMem(asm.R0, flowState, asm.R1, asm.Word),
		asm.Ja.Label("pass"),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("keep"),
	}
}

// readClock reads the clock, and stores its value as the time of the packet.
func readClock(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackZero, asm.R1, asm.Word)},
		lookup(m.clock.FD(), stackZero),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word), asm.StoreMem(asm.RFP, stackValue+flowTime, asm.R1, asm.Word),
		},
	)
}

// record sets the state of the connection. R0 is not 0 if there is an error.
func record(m *kernelMaps, state int32) asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Imm(asm.R1, state), asm.StoreMem(asm.RFP, stackValue+flowState, asm.R1, asm.Word),
		},
		store(m.flows.FD(), stackFlow, stackValue),
	)
}

// deliver sends packets of direct connections to the pod's end of its device.
func deliver(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R7, asm.R6, skbProtocol, asm.Word).WithSymbol("deliver"),
			asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_IP), "pass"),
		},
		tcpFrame("pass"),
		toPod(m),
	)
}

// toPod sends packets of direct connections to the pod's end of its device. The packets must have
// arrived through the device for direct packets of the sender's node.
func toPod(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackPath, asm.Word),
			asm.LoadMem(asm.R2, asm.R6, skbDevice, asm.Word),
			asm.JNE.Reg(asm.R1, asm.R2, "pass"),
		},
		lookup(m.locals.FD(), stackIP+ipTarget),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "pass"),
			asm.LoadMem(asm.R9, asm.R0, localRights, asm.Word),
			asm.LoadMem(asm.R1, asm.R0, localDevice, asm.Word),
			asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.R0, localShare, asm.Word),
			asm.StoreMem(asm.RFP, stackShare, asm.R1, asm.Word),
		},
		macs(asm.RFP, stackIP+ipTarget),
		compatible(m, stackTarget, stackIP+ipSource),
		flowKey(stackIP+ipTarget, stackIP+ipSource, stackIP+tcpTarget, stackIP+tcpSource),
		readClock(m),
		asm.Instructions{
			asm.LoadMem(asm.R7, asm.RFP, stackIP+tcpFlags, asm.Byte),
			asm.Mov.Reg(asm.R1, asm.R7), asm.And.Imm(asm.R1, flagSYN|flagACK),
			asm.JNE.Imm(asm.R1, flagSYN, "open"),
			asm.Mov.Reg(asm.R1, asm.R9), asm.And.Imm(asm.R1, int32(RightAccept)),
			asm.JEq.Imm(asm.R1, 0, "refuse"),
		},
		connection(m, openedThere, closedThere, "to the pod"),
		asm.Instructions{
			asm.JEq.Imm(asm.R2, openedHere, "to the pod"),
			asm.JNE.Imm(asm.R2, openedThere, "pass"),
		},
		keep(RightKeepAccepted, MoveAccepted),
		asm.Instructions{
			asm.Mov.Imm(asm.R1, 0).WithSymbol("to the pod"),
		},
		writeMACs(),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackIndex, asm.Word),
			asm.Mov.Imm(asm.R2, 0), asm.FnRedirectPeer.Call(), asm.Return(),
		},
	)
}

// recordStack records connections that a pod on this node opens through the network stack, because
// their responses must return through it. If the network stack has translated a connection's
// addresses, one of the pod's direct connections could have the same key. Therefore, the pod opens
// no more direct connections to this port. recordStack continues at the label "recorded". It does
// not change R6, R7 or R8.
func recordStack(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word),
			asm.JNE.Imm(asm.R1, fastMark, "from the stack"),
			asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
			asm.Ja.Label("recorded"),
			asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_IP), "recorded").WithSymbol("from the stack"),
		},
		tcpFrame("recorded"),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, stackIP+tcpFlags, asm.Byte),
			asm.And.Imm(asm.R1, flagSYN|flagACK),
			asm.JNE.Imm(asm.R1, flagSYN, "recorded"),
		},
		lookup(m.locals.FD(), stackIP+ipSource),
		asm.Instructions{asm.JEq.Imm(asm.R0, 0, "recorded")},
		flowKey(stackIP+ipSource, stackIP+ipTarget, stackIP+tcpSource, stackIP+tcpTarget),
		lookup(m.flows.FD(), stackFlow),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "translated"),
			asm.LoadMem(asm.R1, asm.R0, flowState, asm.Word), asm.And.Imm(asm.R1, stateMask),
			asm.JEq.Imm(asm.R1, viaStack, "recorded"),
			asm.Mov.Imm(asm.R1, viaStack), asm.StoreMem(asm.R0, flowState, asm.R1, asm.Word),
			asm.FnKtimeGetNs.Call().WithSymbol("translated"),
			asm.StoreMem(asm.RFP, stackTime, asm.R0, asm.DWord),
		},
		pairKey(),
		store(m.pairs.FD(), stackPair, stackTime),
		asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol("recorded")},
	)
}

// tcpFrame copies the headers of a TCP packet to the eBPF stack. It jumps to a label unless the
// packet is an unfragmented TCP packet with an IPv4 header without options.
func tcpFrame(other string) asm.Instructions {
	const version, fragmented = 0x45, 0x3fff
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0)},
		stackPointer(asm.R3, stackFrame),
		asm.Instructions{
			asm.Mov.Imm(asm.R4, frameSize), asm.FnSkbLoadBytes.Call(),
			asm.JNE.Imm(asm.R0, 0, other),
			asm.LoadMem(asm.R1, asm.RFP, stackIP, asm.Byte), asm.JNE.Imm(asm.R1, version, other),
			asm.LoadMem(asm.R1, asm.RFP, stackIP+ipFragment, asm.Half), asm.And.Imm(asm.R1, protocol(fragmented)), asm.JNE.Imm(asm.R1, 0, other),
			asm.LoadMem(asm.R1, asm.RFP, stackIP+ipProtocol, asm.Byte), asm.JNE.Imm(asm.R1, unix.IPPROTO_TCP, other),
		},
	)
}

// macPrefix contains the first bytes of the MAC addresses of pods and nodes. See
// cni.HardwareAddress.
func macPrefix() int32 { return int32(binary.NativeEndian.Uint16([]byte{0x0a, 0x58})) }

// sameHalf jumps to a label unless two bytes of the packet's headers are equal to two other bytes.
// If the offset of the other bytes is -1, it compares the bytes with macPrefix.
func sameHalf(field, other int16, missing string) asm.Instructions {
	if other == -1 {
		return asm.Instructions{asm.LoadMem(asm.R1, asm.RFP, field, asm.Half), asm.JNE.Imm(asm.R1, macPrefix(), missing)}
	}
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, field, asm.Half), asm.LoadMem(asm.R2, asm.RFP, other, asm.Half), asm.JNE.Reg(asm.R1, asm.R2, missing),
	}
}

// macs prepares new MAC addresses for the frame: this node's address as the source, and the address
// of a pod or node as the destination. The IPv4 address of the pod or node is at an offset from a
// register.
func macs(base asm.Register, offset int16) asm.Instructions {
	list := asm.Instructions{
		asm.Mov.Imm(asm.R1, macPrefix()), asm.StoreMem(asm.RFP, stackMACs, asm.R1, asm.Half), asm.StoreMem(asm.RFP, stackMACs+6, asm.R1, asm.Half),
	}
	for at := int16(0); at < 4; at += 2 {
		list = append(list,
			asm.LoadMem(asm.R1, base, offset+at, asm.Half), asm.StoreMem(asm.RFP, stackMACs+2+at, asm.R1, asm.Half),
			asm.LoadMem(asm.R1, asm.R8, settingsGateway+addressSize-4+at, asm.Half), asm.StoreMem(asm.RFP, stackMACs+8+at, asm.R1, asm.Half),
		)
	}
	return list
}

// writeMACs writes the MAC addresses into the frame.
func writeMACs() asm.Instructions {
	const size = 12
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0)},
		stackPointer(asm.R3, stackMACs),
		asm.Instructions{asm.Mov.Imm(asm.R4, size), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call(), asm.JNE.Imm(asm.R0, 0, "drop")},
	)
}

// flowKey stores a connection's key.
func flowKey(local, remote, localPort, remotePort int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, local, asm.Word), asm.StoreMem(asm.RFP, stackFlow+flowLocal, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, remote, asm.Word), asm.StoreMem(asm.RFP, stackFlow+flowRemote, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, localPort, asm.Half), asm.StoreMem(asm.RFP, stackFlow+flowLocalPort, asm.R1, asm.Half),
		asm.LoadMem(asm.R1, asm.RFP, remotePort, asm.Half), asm.StoreMem(asm.RFP, stackFlow+flowRemotePort, asm.R1, asm.Half),
	}
}

// pairKey stores the connection's key without the local port.
func pairKey() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackFlow+flowLocal, asm.Word), asm.StoreMem(asm.RFP, stackPair+flowLocal, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, stackFlow+flowRemote, asm.Word), asm.StoreMem(asm.RFP, stackPair+flowRemote, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, stackFlow+flowRemotePort, asm.Half), asm.StoreMem(asm.RFP, stackPair+flowRemotePort, asm.R1, asm.Half),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, stackPair+flowLocalPort, asm.R1, asm.Half),
	}
}

// store sets an entry of a map. R0 is not 0 if there is an error.
func store(fd int, key, value int16) asm.Instructions {
	return join(
		asm.Instructions{asm.LoadMapPtr(asm.R1, fd)}, stackPointer(asm.R2, key), stackPointer(asm.R3, value),
		asm.Instructions{asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call()},
	)
}
