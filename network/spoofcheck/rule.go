package spoofcheck

import (
	"slices"

	"github.com/google/nftables/expr"
)

// Fields of Ethernet, ARP (RFC 826) and IPv4 headers.
var (
	etherTypeIPv4 = []byte{0x08, 0x00}
	etherTypeARP  = []byte{0x08, 0x06}
	// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
	arpTypes = []byte{0, 1, 0x08, 0x00, 6, 4}
)

// Offsets of fields, in bytes.
const (
	etherSource    = 6
	arpSender      = 8
	arpTarget      = 24 // its IPv4 address
	ipv4SourceAddr = 12
)

// rules returns the rules of the pod's chain. nftables removes a VLAN tag from a frame before the
// hook, but adds it again for expressions that read the Ethernet header. So frames with a tag
// match no rule.
func (p Pod) rules() [][]expr.Any {
	address, gateway := p.Address.AsSlice(), p.GatewayAddress.AsSlice()
	return [][]expr.Any{
		accept(
			field(expr.PayloadBaseLLHeader, 0, p.GatewayMAC, p.MAC, etherTypeIPv4),
			field(expr.PayloadBaseNetworkHeader, ipv4SourceAddr, address),
		),
		accept(
			field(expr.PayloadBaseLLHeader, etherSource, p.MAC, etherTypeARP),
			field(expr.PayloadBaseNetworkHeader, 0, arpTypes),
			field(expr.PayloadBaseNetworkHeader, arpSender, p.MAC, address),
			field(expr.PayloadBaseNetworkHeader, arpTarget, gateway),
		),
	}
}

// field matches frames whose header has the given bytes, at most 16, at an offset.
func field(header expr.PayloadBase, offset uint32, values ...[]byte) []expr.Any {
	data := slices.Concat(values...)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: header, Offset: offset, Len: uint32(len(data))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data},
	}
}

// accept ends the rule that consists of the given matches.
func accept(matches ...[]expr.Any) []expr.Any {
	return append(slices.Concat(matches...), &expr.Verdict{Kind: expr.VerdictAccept})
}
