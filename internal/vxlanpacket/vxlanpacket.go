// Package vxlanpacket writes and reads VXLAN packets (RFC 7348) for tests that forge and capture
// them.
package vxlanpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Packet is a VXLAN packet.
type Packet struct {
	VNI      uint32
	MAC      net.HardwareAddr // destination MAC address
	Source   netip.Addr
	Target   netip.Addr
	Protocol uint16 // EtherType; the default is IPv4
	Port     uint16 // destination UDP port
	Payload  string // UDP payload
}

const (
	vxlanSize, etherSize, ipv4Size, ipv6Size, udpSize = 8, 14, 20, 40, 8

	validVNI = 0x08
)

// Encode returns the payload of the UDP packet between hosts. The inner packet is a UDP packet
// without a checksum.
func (p Packet) Encode() []byte {
	data := []byte{validVNI, 0, 0, 0}
	data = binary.BigEndian.AppendUint32(data, p.VNI<<8)
	data = append(data, p.MAC...)
	data = append(data, 0x02, 0, 0, 0, 0, 1)
	protocol := p.Protocol
	if protocol == 0 {
		protocol = unix.ETH_P_IP
	}
	data = binary.BigEndian.AppendUint16(data, protocol)
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	binary.BigEndian.PutUint16(ip[2:], uint16(ipv4Size+udpSize+len(p.Payload)))
	ip = append(append(ip, p.Source.AsSlice()...), p.Target.AsSlice()...)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	data = append(data, ip...)
	data = binary.BigEndian.AppendUint16(data, 9)
	data = binary.BigEndian.AppendUint16(data, p.Port)
	data = binary.BigEndian.AppendUint16(data, uint16(udpSize+len(p.Payload)))
	data = append(data, 0, 0)
	return append(data, p.Payload...)
}

// checksum returns an IPv4 header's checksum (RFC 1071).
func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// Parse parses a captured frame with a VXLAN packet for the given UDP port. ok is false for other
// frames. Payload is the data after the inner IPv4 or IPv6 header, for any protocol.
func Parse(frame []byte, port uint16) (packet Packet, ok bool) {
	const inner = etherSize + ipv4Size + udpSize + vxlanSize
	if len(frame) < inner+etherSize+ipv4Size || frame[etherSize] != 0x45 || frame[etherSize+9] != unix.IPPROTO_UDP ||
		binary.BigEndian.Uint16(frame[etherSize+ipv4Size+2:]) != port {
		return Packet{}, false
	}
	ip := frame[inner+etherSize:]
	if binary.BigEndian.Uint16(frame[inner+12:]) == unix.ETH_P_IPV6 && len(ip) >= ipv6Size {
		packet.Source, packet.Target = netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
		packet.Payload = string(ip[ipv6Size:])
	} else {
		packet.Source, packet.Target = netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
		packet.Payload = string(ip[ipv4Size:])
	}
	packet.VNI = binary.BigEndian.Uint32(frame[inner-4:]) >> 8
	packet.MAC = net.HardwareAddr(frame[inner : inner+6])
	packet.Protocol = binary.BigEndian.Uint16(frame[inner+12:])
	return packet, true
}

// packetTimeout is the maximum time that a capture waits for a packet.
const packetTimeout = 10 * time.Second

// Capture receives the frames of a device in the calling thread's network namespace.
type Capture struct {
	fd int
}

// NewCapture starts to receive frames, which the kernel queues until Next is called.
func NewCapture(device string) (*Capture, error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("find device %q: %w", device, err)
	}
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return nil, fmt.Errorf("create packet socket: %w", err)
	}
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("capture frames of device %q: %w", device, err), unix.Close(fd))
	}
	return &Capture{fd}, nil
}

// Next returns the next VXLAN packet for which match returns true. It returns an error if no such
// packet arrives within ten seconds, regardless of other frames.
func (c *Capture) Next(port uint16, match func(Packet) bool) (Packet, error) {
	frame := make([]byte, 1<<16)
	for deadline := time.Now().Add(packetTimeout); time.Now().Before(deadline); {
		size, _, err := unix.Recvfrom(c.fd, frame, 0)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) { // EAGAIN: no frame in a second
			continue
		}
		if err != nil {
			return Packet{}, fmt.Errorf("receive frame: %w", err)
		}
		if packet, ok := Parse(frame[:size], port); ok && match(packet) {
			return packet, nil
		}
	}
	return Packet{}, fmt.Errorf("no matching VXLAN packet arrived within %s", packetTimeout)
}

// Close stops the capture.
func (c *Capture) Close() error { return unix.Close(c.fd) }
