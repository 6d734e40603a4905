package egressrouter

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

// tableName is the name of the nftables table in the pod's network namespace.
const tableName = "egress-router"

// destinationTranslated is the IPS_DST_NAT bit of a connection's status.
const destinationTranslated = 1 << 5

// rules replaces the table of each IP family. The pod has no table for IPv6 if its macvlan device
// has no IPv6 address, because IPv6 is then disabled on the device. In nft syntax, the table for
// IPv4 is:
//
//	chain mark    { type filter hook prerouting priority mangle
//	                iifname eth0 ct mark set 1
//	                iifname macvlan0 meta mark set ct mark }
//	chain respond { type route hook output priority mangle; meta mark set ct mark }
//	chain input   { type filter hook input priority filter
//	                iifname macvlan0 ct state established,related accept
//	                iifname macvlan0 meta l4proto icmp accept
//	                iifname macvlan0 drop }
//	chain forward { type filter hook forward priority filter; policy drop
//	                iifname eth0 oifname macvlan0 ct status dnat accept
//	                iifname macvlan0 oifname eth0 ct state established,related accept }
//
// and, if the pod redirects connections:
//
//	chain redirect { type nat hook prerouting priority dstnat
//	                 iifname eth0 tcp dport 80 dnat to 203.0.113.25:80
//	                 iifname eth0 meta l4proto { tcp, udp } dnat to 203.0.113.27 }
//	chain source   { type nat hook postrouting priority srcnat
//	                 oifname macvlan0 snat to 192.168.12.99 }
func (s Settings) rules() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	// Without the table for IPv4, machines outside the cluster could connect to the pod's cluster
	// address through the macvlan device.
	sources := map[ipfamily.Family]netip.Addr{ipfamily.IPv4: {}}
	for _, r := range s.Routes {
		sources[r.family()] = r.Source.Addr()
	}
	for f, source := range sources {
		s.addTable(conn, f, source)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("write nftables table %s: %w", tableName, err)
	}
	return nil
}

// addTable replaces the table of a family. source is invalid if the pod has no address outside the
// cluster in this family.
func (s Settings) addTable(conn *nftables.Conn, f ipfamily.Family, source netip.Addr) {
	identity := &nftables.Table{Family: tableFamily(f), Name: tableName}
	conn.AddTable(identity) // because deleting a missing table is an error
	conn.DelTable(identity)
	t := &table{conn, conn.AddTable(identity)}
	filter, nat := nftables.ChainTypeFilter, nftables.ChainTypeNAT

	mark := t.chain("mark", filter, nftables.ChainHookPrerouting, nftables.ChainPriorityMangle)
	t.rule(mark, from(clusterDevice), setConnectionMark(clusterMark))
	t.rule(mark, from(macvlan.Device), copyConnectionMark())
	respond := t.chain("respond", nftables.ChainTypeRoute, nftables.ChainHookOutput, nftables.ChainPriorityMangle)
	t.rule(respond, copyConnectionMark())

	input := t.chain("input", filter, nftables.ChainHookInput, nftables.ChainPriorityFilter)
	t.rule(input, from(macvlan.Device), isResponse(), verdict(expr.VerdictAccept))
	t.rule(input, from(macvlan.Device), protocol(controlProtocol(f)), verdict(expr.VerdictAccept))
	t.rule(input, from(macvlan.Device), verdict(expr.VerdictDrop))

	drop := nftables.ChainPolicyDrop
	forward := t.chain("forward", filter, nftables.ChainHookForward, nftables.ChainPriorityFilter)
	forward.Policy = &drop
	t.rule(forward, from(clusterDevice), to(macvlan.Device), isRedirected(), verdict(expr.VerdictAccept))
	t.rule(forward, from(macvlan.Device), to(clusterDevice), isResponse(), verdict(expr.VerdictAccept))

	if s.redirects() && source.IsValid() {
		redirect := t.chain("redirect", nat, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest)
		for _, r := range s.Destination.Redirects {
			if ipfamily.Of(r.To.Addr()) != f {
				continue
			}
			number := protocolNumber(r.Protocol)
			t.rule(redirect, from(clusterDevice), protocol(number), port(r.Port), translate(expr.NATTypeDestNAT, r.To.Addr(), r.To.Port()))
		}
		for _, fallback := range s.Destination.Fallbacks {
			if ipfamily.Of(fallback) != f {
				continue
			}
			for _, number := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
				t.rule(redirect, from(clusterDevice), protocol(number), translate(expr.NATTypeDestNAT, fallback, 0))
			}
		}
		translation := t.chain("source", nat, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
		t.rule(translation, to(macvlan.Device), translate(expr.NATTypeSourceNAT, source, 0))
	}
}

type table struct {
	conn *nftables.Conn
	*nftables.Table
}

func (t *table) chain(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return t.conn.AddChain(&nftables.Chain{Table: t.Table, Name: name, Type: kind, Hooknum: hook, Priority: priority})
}

func (t *table) rule(chain *nftables.Chain, parts ...[]expr.Any) {
	t.conn.AddRule(&nftables.Rule{Table: t.Table, Chain: chain, Exprs: slices.Concat(parts...)})
}

func equal(value ...byte) expr.Any { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value} }

func from(device string) []expr.Any { return onDevice(expr.MetaKeyIIFNAME, device) }
func to(device string) []expr.Any   { return onDevice(expr.MetaKeyOIFNAME, device) }

func onDevice(key expr.MetaKey, device string) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, device)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, equal(name...)}
}

func protocol(number byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal(number)}
}

func protocolNumber(name string) byte {
	if name == "udp" {
		return unix.IPPROTO_UDP
	}
	return unix.IPPROTO_TCP
}

// port matches the destination port of TCP and UDP packets.
func port(number uint16) []expr.Any {
	const offset, length = 2, 2
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length},
		equal(binary.BigEndian.AppendUint16(nil, number)...),
	}
}

func setConnectionMark(mark uint32) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint32(nil, mark)},
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1, SourceRegister: true},
	}
}

func copyConnectionMark() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1, SourceRegister: true},
	}
}

func isResponse() []expr.Any {
	return hasBits(expr.CtKeySTATE, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)
}

func isRedirected() []expr.Any { return hasBits(expr.CtKeySTATUS, destinationTranslated) }

func hasBits(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: key, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// translate translates an address and, unless port is 0, a port.
func translate(kind expr.NATType, address netip.Addr, port uint16) []expr.Any {
	nat := &expr.NAT{Type: kind, Family: natFamily(ipfamily.Of(address)), RegAddrMin: 1}
	parts := []expr.Any{&expr.Immediate{Register: 1, Data: address.AsSlice()}}
	if port != 0 {
		nat.RegProtoMin, nat.Specified = 2, true
		parts = append(parts, &expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, port)})
	}
	return append(parts, nat)
}
