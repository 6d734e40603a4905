package vxlan

import (
	"encoding/binary"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// maxReplicas is the maximum number of hosts that receive copies of a multicast packet. The kernel
// requires a bound on the program's loop.
const maxReplicas = 1024

// copyMark marks a copy while the program sends it through the device. Package egressip does not
// use this bit.
const copyMark = 1 << 27

// isMulticast jumps to a label if the packet's destination is a multicast address. It changes R1.
func isMulticast(label string) asm.Instructions {
	octet := func(value byte) int32 { return int32(binary.NativeEndian.Uint32([]byte{value, 0, 0, 0})) }
	const isIPv6, unicast = " if IPv6", " is unicast"
	return asm.Instructions{
		asm.JEq.Imm(asm.R7, protocol(unix.ETH_P_IPV6), label+isIPv6),
		asm.JNE.Imm(asm.R7, protocol(unix.ETH_P_IP), label+unicast),
		asm.LoadMem(asm.R1, asm.RFP, stackTarget+12, asm.Word),
		asm.And.Imm(asm.R1, octet(0xf0)),
		asm.JEq.Imm(asm.R1, octet(0xe0), label),
		asm.Ja.Label(label + unicast),
		asm.LoadMem(asm.R1, asm.RFP, stackTarget, asm.Byte).WithSymbol(label + isIPv6),
		asm.JEq.Imm(asm.R1, 0xff, label),
		asm.Mov.Imm(asm.R1, 0).WithSymbol(label + unicast),
	}
}

// isCopy passes copies that the program has sent itself, because they already have a tunnel key.
func isCopy() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word),
		asm.JNE.Imm(asm.R1, copyMark, "original"),
		asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
		asm.Ja.Label("pass"),
		asm.Mov.Imm(asm.R1, 0).WithSymbol("original"),
	}
}

// copies sends a copy of a multicast packet to each host, through the device again, and drops the
// original packet. The copies have the sender's network ID.
func copies(m *kernelMaps) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.R8, settingsFlags, asm.Word).WithSymbol("copy"),
			asm.And.Imm(asm.R1, flagMulticast),
			asm.JEq.Imm(asm.R1, 0, "drop"),
		},
		podOf(m, stackSource),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R7, asm.R0, 0, asm.Word),
			asm.Mov.Imm(asm.R1, copyMark), asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word),
			asm.Mov.Imm(asm.R9, 0),
			asm.JGE.Imm(asm.R9, maxReplicas, "drop").WithSymbol("next"),
			asm.LoadMem(asm.R1, asm.R8, settingsReplicas, asm.Word),
			asm.JGE.Reg(asm.R9, asm.R1, "drop"),
			asm.StoreMem(asm.RFP, stackIndex, asm.R9, asm.Word),
		},
		lookup(m.replicas.FD(), stackIndex),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R2, asm.R0, 0, asm.Word),
		},
		tunnelKey("clone"),
		asm.Instructions{
			asm.Ja.Label("continue"),
			asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("clone"),
			asm.LoadMem(asm.R2, asm.R6, skbDevice, asm.Word),
			asm.Mov.Imm(asm.R3, 0), asm.FnCloneRedirect.Call(),
			asm.Add.Imm(asm.R9, 1).WithSymbol("continue"),
			asm.Ja.Label("next"),
		},
	)
}
