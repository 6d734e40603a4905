package idle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// Constants from linux/netfilter/nfnetlink_log.h.
const (
	messagePacket = unix.NFNL_SUBSYS_ULOG << 8
	messageConfig = unix.NFNL_SUBSYS_ULOG<<8 | 1

	attributePayload = 9
	attributeCommand = 1
	attributeMode    = 2

	commandBind = 1
	copyPacket  = 2
)

const (
	// firstGroup is the first group of the kernel's packet log to try, and groups is the number of
	// groups to try. Another cluster on the machine might use some of these groups.
	firstGroup, groups = 30230, 32
	// logBuffer is the size, in bytes, of the kernel's buffer for unread packets. Packets that do
	// not fit are dropped.
	logBuffer = 4 << 20
	// headerSize and udpSize are the lengths, in bytes, of netfilter's message header and of the
	// UDP header.
	headerSize, udpSize = 4, 8
)

// packetLog receives the datagrams that the table copies to a group of the kernel's packet log.
type packetLog struct {
	*netlink.Conn
	group uint16
}

// datagram is a datagram to an idle service.
type datagram struct {
	route
	payload []byte
}

// openPacketLog opens an unused group of the packet log.
func openPacketLog() (*packetLog, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's packet log: %w", err)
	}
	err = errors.Join(conn.SetReadBuffer(logBuffer), conn.SetOption(netlink.NoENOBUFS, true))
	for group := uint16(firstGroup); err == nil && group < firstGroup+groups; group++ {
		err = configure(conn, group, netlink.Attribute{Type: attributeCommand, Data: []byte{commandBind}})
		if errors.Is(err, unix.EBUSY) {
			err = nil
			continue
		}
		if err == nil { // copy whole packets: length 0 means no limit
			err = configure(conn, group, netlink.Attribute{Type: attributeMode, Data: []byte{0, 0, 0, 0, copyPacket, 0}})
		}
		if err == nil {
			return &packetLog{conn, group}, nil
		}
	}
	conn.Close()
	if err == nil {
		err = fmt.Errorf("groups %d to %d are in use", firstGroup, firstGroup+groups-1)
	}
	return nil, fmt.Errorf("bind kernel packet log group: %w", err)
}

// configure changes one setting of a group.
func configure(conn *netlink.Conn, group uint16, attribute netlink.Attribute) error {
	attributes, err := netlink.MarshalAttributes([]netlink.Attribute{attribute})
	if err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, 0}, group)
	_, err = conn.Execute(netlink.Message{
		Header: netlink.Header{Type: messageConfig, Flags: netlink.Request | netlink.Acknowledge}, Data: append(header, attributes...),
	})
	return err
}

// next waits for datagrams. It skips other packets and fragments.
func (p *packetLog) next() (datagrams []datagram, err error) {
	messages, err := p.Receive()
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		if message.Header.Type != messagePacket || len(message.Data) < headerSize {
			continue
		}
		attributes, err := netlink.UnmarshalAttributes(message.Data[headerSize:])
		if err != nil {
			return datagrams, fmt.Errorf("read the kernel's packet log: %w", err)
		}
		for _, attribute := range attributes {
			if attribute.Type != attributePayload {
				continue
			}
			if d, ok := parse(attribute.Data); ok {
				datagrams = append(datagrams, d)
			}
		}
	}
	return datagrams, nil
}

// parse returns the UDP datagram in an IP packet. ok is false if the packet is incomplete or does
// not contain a UDP datagram.
func parse(packet []byte) (d datagram, ok bool) {
	if len(packet) == 0 {
		return d, false
	}
	var client, service netip.Addr
	var udp []byte
	switch packet[0] >> 4 {
	case ipv4.Version:
		client, service, udp = parseIPv4(packet)
	case ipv6.Version:
		client, service, udp = parseIPv6(packet)
	}
	if len(udp) < udpSize {
		return d, false
	}
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if length < udpSize || length > len(udp) {
		return d, false
	}
	d.client = netip.AddrPortFrom(client, binary.BigEndian.Uint16(udp))
	d.service = netip.AddrPortFrom(service, binary.BigEndian.Uint16(udp[2:]))
	d.payload = slices.Clone(udp[udpSize:length]) // do not keep the longer packet in memory
	return d, true
}

// parseIPv4 returns the addresses and the UDP packet in an IPv4 packet. The UDP packet is nil if
// the IPv4 packet contains none.
func parseIPv4(packet []byte) (source, target netip.Addr, udp []byte) {
	if len(packet) < ipv4.HeaderLen {
		return source, target, nil
	}
	size := int(packet[0]&0xf) * 4
	fragment := binary.BigEndian.Uint16(packet[6:]) &^ (1 << 14) // ignore the don't-fragment bit
	if packet[9] != unix.IPPROTO_UDP || size < ipv4.HeaderLen || fragment != 0 || len(packet) < size {
		return source, target, nil
	}
	return netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20])), packet[size:]
}

// parseIPv6 returns the addresses and the UDP packet in an IPv6 packet. It skips option and routing
// headers (RFC 8200, 4.1). The UDP packet is nil if the IPv6 packet contains none, or if it is a
// fragment.
func parseIPv6(packet []byte) (source, target netip.Addr, udp []byte) {
	if len(packet) < ipv6.HeaderLen {
		return source, target, nil
	}
	next, rest := packet[6], packet[ipv6.HeaderLen:]
	for next == unix.IPPROTO_HOPOPTS || next == unix.IPPROTO_ROUTING || next == unix.IPPROTO_DSTOPTS {
		const unit = 8
		if len(rest) < unit || len(rest) < (int(rest[1])+1)*unit {
			return source, target, nil
		}
		next, rest = rest[0], rest[(int(rest[1])+1)*unit:]
	}
	if next != unix.IPPROTO_UDP {
		return source, target, nil
	}
	return netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40])), rest
}
