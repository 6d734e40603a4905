package spoofcheck

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Fields of Ethernet, ARP (RFC 826), IPv4 and IPv6 headers.
var (
	etherTypeIPv4 = []byte{0x08, 0x00}
	etherTypeARP  = []byte{0x08, 0x06}
	etherTypeIPv6 = []byte{0x86, 0xdd}
	// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
	arpTypes = []byte{0, 1, 0x08, 0x00, 6, 4}
)

// Field offsets, in bytes.
const (
	etherSource    = 6
	arpSender      = 8
	arpTarget      = 24 // the target's IPv4 address
	ipv4SourceAddr = 12
	ipv6NextHeader = 6
	ipv6SourceAddr = 8
)

// Types of the neighbor discovery messages (RFC 4861), from router solicitation to redirect.
const firstDiscovery, lastDiscovery = 133, 137

// rules returns the rules in the pod's chain. nftables removes a VLAN tag from a frame before the
// hook, but adds it again for expressions that read the Ethernet header. Therefore, a tagged frame
// matches no rule.
func (p Pod) rules() [][]expr.Any {
	address, gateway := p.Address.AsSlice(), p.GatewayAddress.AsSlice()
	rules := [][]expr.Any{
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
	if !p.SecondAddress.IsValid() {
		return rules
	}
	source := slices.Concat(
		field(expr.PayloadBaseLLHeader, 0, p.GatewayMAC, p.MAC, etherTypeIPv6),
		field(expr.PayloadBaseNetworkHeader, ipv6SourceAddr, p.SecondAddress.AsSlice()),
	)
	return append(rules,
		accept(source, protocol(expr.CmpOpNeq, unix.IPPROTO_ICMPV6)),
		accept(source, protocol(expr.CmpOpEq, unix.IPPROTO_ICMPV6), []expr.Any{
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Len: 1},
			&expr.Range{Op: expr.CmpOpNeq, Register: 1, FromData: []byte{firstDiscovery}, ToData: []byte{lastDiscovery}},
		}),
		// Fragments have no ICMP header. The kernel ignores neighbor discovery messages in
		// fragments (RFC 6980).
		accept(source, field(expr.PayloadBaseNetworkHeader, ipv6NextHeader, []byte{unix.IPPROTO_FRAGMENT})),
	)
}

// protocol compares the protocol that follows the IPv6 extension headers with number. It matches no
// packets whose headers the kernel cannot parse.
func protocol(op expr.CmpOp, number byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: op, Register: 1, Data: []byte{number}},
	}
}

// field matches frames whose header contains the given bytes at an offset. There can be at most 16
// bytes.
func field(header expr.PayloadBase, offset uint32, values ...[]byte) []expr.Any {
	data := slices.Concat(values...)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: header, Offset: offset, Len: uint32(len(data))},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data},
	}
}

// accept returns a rule that accepts the frames that satisfy all of the matches.
func accept(matches ...[]expr.Any) []expr.Any {
	return append(slices.Concat(matches...), &expr.Verdict{Kind: expr.VerdictAccept})
}
