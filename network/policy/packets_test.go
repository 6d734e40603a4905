package policy

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// packet is an IPv4 packet that a test sends.
type packet struct {
	protocol byte
	id       uint16
	// fragment contains the "more fragments" flag (0x2000) and the offset in units of eight bytes.
	fragment uint16
	options  []byte
	payload  []byte
}

// moreFragments is the flag that is set in all fragments except the last one.
const moreFragments = 0x2000

// encode returns the packet without checksums. The kernel adds the header checksum.
func (p packet) encode(from, to netip.Addr) []byte {
	header := make([]byte, 20, 20+len(p.options)+len(p.payload))
	header[0] = byte(0x40 + 5 + len(p.options)/4)
	binary.BigEndian.PutUint16(header[4:], p.id)
	binary.BigEndian.PutUint16(header[6:], p.fragment)
	header[8], header[9] = 64, p.protocol
	copy(header[12:], from.AsSlice())
	copy(header[16:], to.AsSlice())
	return slices.Concat(header, p.options, p.payload)
}

// udp returns a datagram that has no checksum and contains zeros.
func udp(port uint16, length int) []byte {
	datagram := make([]byte, 8+length)
	binary.BigEndian.PutUint16(datagram, 999)
	binary.BigEndian.PutUint16(datagram[2:], port)
	binary.BigEndian.PutUint16(datagram[4:], uint16(len(datagram)))
	return datagram
}

// sctp returns the first packet of an association.
func sctp(port uint16) []byte {
	init := make([]byte, 32)
	binary.BigEndian.PutUint16(init, 999)
	binary.BigEndian.PutUint16(init[2:], port)
	init[12], init[15] = 1, 20 // type INIT, length
	return init
}

// syn returns the first segment of a TCP connection.
func syn(port uint16) []byte {
	segment := make([]byte, 20)
	binary.BigEndian.PutUint16(segment, 999)
	binary.BigEndian.PutUint16(segment[2:], port)
	segment[12], segment[13] = 5<<4, 2
	return segment
}

// transmit sends packets through a pod's raw socket.
func (f *fixture) transmit(from, to string, packets ...packet) {
	f.Helper()
	source, target := netip.MustParseAddr(f.address[from]), netip.MustParseAddr(f.address[to])
	f.pods[from].Do(f.T, func() error {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		for _, p := range packets {
			if err := unix.Sendto(socket, p.encode(source, target), 0, &unix.SockaddrInet4{Addr: target.As4()}); err != nil {
				return fmt.Errorf("send %+v: %w", p, err)
			}
		}
		return nil
	})
}

// capture records the packets from one pod that arrive on another pod's device. The returned
// function waits for the packet with the ID last, and returns the IDs of the recorded packets.
func (f *fixture) capture(from, to string) (arrivals func(last uint16) []string) {
	f.Helper()
	var socket int
	f.pods[to].Do(f.T, func() (err error) {
		const protocol = unix.ETH_P_IP<<8 | unix.ETH_P_IP>>8&0xff // in the byte order of the network
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, protocol)
		if err != nil {
			return err
		}
		f.Cleanup(func() { unix.Close(socket) })
		return unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30})
	})
	source := netip.MustParseAddr(f.address[from]).As4()
	return func(last uint16) (arrivals []string) {
		f.Helper()
		for buffer := make([]byte, 4096); ; {
			n, _, err := unix.Recvfrom(socket, buffer, 0)
			if err != nil {
				f.Fatalf("the last packet does not arrive: %v; the others are %q", err, arrivals)
			}
			if n < 20 || [4]byte(buffer[12:16]) != source {
				continue
			}
			id := binary.BigEndian.Uint16(buffer[4:])
			arrivals = append(arrivals, fmt.Sprint(id))
			if id == last && binary.BigEndian.Uint16(buffer[6:])&moreFragments == 0 {
				return arrivals
			}
		}
	}
}

// TestRulesHoldForEveryPacket sends packets whose port or protocol a filter could fail to
// recognize. The policy accepts UDP and SCTP only on port 80.
func TestRulesHoldForEveryPacket(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.lease("bank", "till")
	f.create("shop", "web")
	f.create("bank", "till")
	f.policy("one", `{podSelector: {}, ingress: [{ports: [{port: 80, protocol: UDP}, {port: 80, protocol: SCTP}]}]}`)
	f.start()
	f.reaches("till>web web>till")

	allowed, denied := udp(80, 56), udp(81, 56)
	noOperation := []byte{1, 1, 1, 1}
	attacks := []packet{
		{protocol: unix.IPPROTO_SCTP, id: 101, payload: sctp(81)},
		{protocol: unix.IPPROTO_TCP, id: 102, payload: syn(80)},
		{protocol: unix.IPPROTO_UDPLITE, id: 103, payload: allowed},
		{protocol: unix.IPPROTO_GRE, id: 104, payload: make([]byte, 16)},
		{protocol: unix.IPPROTO_IPIP, id: 105, payload: packet{protocol: unix.IPPROTO_UDP, payload: allowed}.encode(netip.IPv4Unspecified(), netip.IPv4Unspecified())},
		{protocol: unix.IPPROTO_ICMP, id: 106, payload: append([]byte{8, 0, 0xf7, 0xff}, make([]byte, 4)...)},
		{protocol: unix.IPPROTO_UDP, id: 107, options: noOperation, payload: denied},
		// A datagram in two fragments. The second fragment has no port.
		{protocol: unix.IPPROTO_UDP, id: 108, fragment: moreFragments, payload: denied[:16]},
		{protocol: unix.IPPROTO_UDP, id: 108, fragment: 2, payload: denied[16:]},
		// A last fragment without the other fragments.
		{protocol: unix.IPPROTO_UDP, id: 109, fragment: 2, payload: denied[16:]},
		// The second fragment overlaps the first fragment, which has the allowed port.
		{protocol: unix.IPPROTO_UDP, id: 110, fragment: moreFragments, payload: allowed[:16]},
		{protocol: unix.IPPROTO_UDP, id: 110, fragment: moreFragments, payload: denied[:24]},
		{protocol: unix.IPPROTO_UDP, id: 110, fragment: 3, payload: denied[24:]},
		// The first fragment ends in the middle of the TCP header.
		{protocol: unix.IPPROTO_TCP, id: 111, fragment: moreFragments, payload: syn(80)[:8]},
		{protocol: unix.IPPROTO_TCP, id: 111, fragment: 1, payload: syn(80)[8:]},
	}
	arrivals := f.capture("till", "web")
	f.transmit("till", "web", attacks...)
	f.transmit("till", "web",
		packet{protocol: unix.IPPROTO_SCTP, id: 201, payload: sctp(80)},
		packet{protocol: unix.IPPROTO_UDP, id: 202, fragment: moreFragments, payload: allowed[:16]},
		packet{protocol: unix.IPPROTO_UDP, id: 202, fragment: 2, payload: allowed[16:]},
		packet{protocol: unix.IPPROTO_UDP, id: 203, payload: allowed})
	got := arrivals(203)
	for _, id := range got {
		if !strings.HasPrefix(id, "2") {
			t.Errorf("the packet %s passes the policy; all are %q", id, got)
		}
	}
	for _, id := range []string{"201", "202"} {
		if !slices.Contains(got, id) {
			t.Errorf("the packet %s does not pass the policy; those that do are %q", id, got)
		}
	}
}
