package multitenant

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// These are the ports on which all receivers listen for TCP, UDP and SCTP.
const (
	webPort   = 7080
	otherPort = 7090
)

// probe is a packet that an actor sends, and its outcome.
type probe struct {
	flow
	address netip.AddrPort // the destination before translation
	arrived bool
	answer  bool
	problem error // the error that the sender received
}

func (p *probe) String() string {
	name := func(a actor) string {
		if !a.isPod() {
			return a.host
		}
		return a.project + " on " + a.host
	}
	text := fmt.Sprintf("%s to %s %d of %s at %s (%s)", name(p.from), p.protocol, p.port, name(p.to), p.address, p.path)
	if p.path == toNodePort {
		text += " of " + p.entry.host
	}
	if p.problem != nil {
		text += ": " + p.problem.Error()
	}
	return text
}

// sockets contains an actor's sockets: servers for all protocols, and senders. SCTP associations
// are opened with raw sockets, because the test machine's kernel does not support SCTP.
type sockets struct {
	actor
	run     func(func() error) error              // runs a function in the actor's network
	senders map[corev1.Protocol][2]net.PacketConn // the second index is the IP family
	*ledger
}

// ledger contains the current round's probes. Each packet contains its probe's number.
type ledger struct {
	mu     sync.Mutex
	first  uint32
	probes []*probe
}

// magic precedes the probe's number in a packet.
const magic = 0x51a9b0be

func encode(number uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, magic), number)
}

func decode(data []byte) (number uint32, ok bool) {
	if len(data) < 8 || binary.BigEndian.Uint32(data) != magic {
		return 0, false
	}
	return binary.BigEndian.Uint32(data[4:]), true
}

// note records that a probe or, if answer is true, its response has arrived.
func (l *ledger) note(number uint32, answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := int(number) - int(l.first); i >= 0 && i < len(l.probes) {
		l.probes[i].arrived = true
		l.probes[i].answer = l.probes[i].answer || answer
	}
}

// families contains the suffixes of package net's network names, such as udp4, indexed by IP
// family.
var families = [2]string{"4", "6"}

// open opens the sockets, which are closed when the test ends.
func (s *sockets) open(t *testing.T) error {
	s.senders = map[corev1.Protocol][2]net.PacketConn{}
	return s.run(func() error {
		for family := range families {
			if err := errors.Join(s.openServers(t, family), s.openSenders(t, family)); err != nil {
				return err
			}
		}
		return nil
	})
}

// rawNetwork returns package net's network name for a raw socket of the given protocol and IP
// family.
func rawNetwork(protocol corev1.Protocol, family int) string {
	if protocol == corev1.ProtocolSCTP {
		return "ip" + families[family] + ":132"
	}
	return "ip" + families[family] + ":" + [2]string{"1", "58"}[family]
}

// openServers opens the sockets that receive probes at the actor's first address.
func (s *sockets) openServers(t *testing.T, family int) error {
	address := s.addresses[family][0].String()
	for _, port := range []int{webPort, otherPort} {
		listener, err := net.Listen("tcp"+families[family], net.JoinHostPort(address, fmt.Sprint(port)))
		if err != nil {
			return err
		}
		background(t, listener, func() { s.acceptTCP(listener) })
		packets, err := net.ListenPacket("udp"+families[family], net.JoinHostPort(address, fmt.Sprint(port)))
		if err != nil {
			return err
		}
		background(t, packets, func() { receive(packets, s.echo) })
	}
	for protocol, serve := range map[corev1.Protocol]handler{corev1.ProtocolSCTP: s.acceptSCTP, icmp: s.countICMP} {
		conn, err := net.ListenPacket(rawNetwork(protocol, family), address)
		if err != nil {
			return err
		}
		background(t, conn, func() { receive(conn, serve) })
	}
	return nil
}

// openSenders opens the sockets that send probes. The kernel selects the source address.
func (s *sockets) openSenders(t *testing.T, family int) error {
	for protocol, read := range map[corev1.Protocol]handler{
		corev1.ProtocolUDP:  func(_ net.PacketConn, _ net.Addr, data []byte) { s.answered(data) },
		corev1.ProtocolSCTP: s.answeredSCTP,
		icmp:                s.answeredICMP,
	} {
		network, address := rawNetwork(protocol, family), ""
		if protocol == corev1.ProtocolUDP {
			network, address = "udp"+families[family], ":0"
		}
		conn, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		sockets := s.senders[protocol]
		sockets[family] = conn
		s.senders[protocol] = sockets
		background(t, conn, func() { receive(conn, read) })
	}
	return nil
}

// handler handles a received packet. Packets from raw sockets do not include the IP header.
type handler func(conn net.PacketConn, from net.Addr, data []byte)

// background runs f, which must return when socket is closed. The socket is closed when the test
// ends.
func background(t *testing.T, socket io.Closer, f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	t.Cleanup(func() { _ = socket.Close(); <-done })
}

func (s *sockets) acceptTCP(listener net.Listener) {
	var served sync.WaitGroup
	defer served.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		served.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(requestTimeout))
			data := make([]byte, 8)
			if _, err := io.ReadFull(conn, data); err == nil {
				if number, ok := decode(data); ok {
					s.note(number, false)
					_, _ = conn.Write(data)
				}
			}
		})
	}
}

func receive(conn net.PacketConn, handle handler) {
	for buffer := make([]byte, 2048); ; {
		size, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // other errors report that an earlier packet was rejected
			handle(conn, from, buffer[:size])
		}
	}
}

func (s *sockets) echo(conn net.PacketConn, from net.Addr, data []byte) {
	if number, ok := decode(data); ok {
		s.note(number, false)
		_, _ = conn.WriteTo(data, from)
	}
}

func (s *sockets) answered(data []byte) {
	if number, ok := decode(data); ok {
		s.note(number, true)
	}
}

// icmpHeader is the size, in bytes, of the header of an echo request or reply. The probe's number
// follows it.
const icmpHeader = 8

func (s *sockets) countICMP(_ net.PacketConn, _ net.Addr, data []byte) {
	// Count only echo requests. The kernel itself responds to them.
	if len(data) > icmpHeader && (data[0] == 8 || data[0] == 128) {
		if number, ok := decode(data[icmpHeader:]); ok {
			s.note(number, false)
		}
	}
}

func (s *sockets) answeredICMP(_ net.PacketConn, _ net.Addr, data []byte) {
	if len(data) > icmpHeader && (data[0] == 0 || data[0] == 129) {
		s.answered(data[icmpHeader:])
	}
}

// echoRequest returns an ICMP echo request. For ICMPv6, the kernel adds the checksum.
func echoRequest(family int, number uint32) []byte {
	message := append([]byte{[2]byte{8, 128}[family], 0, 0, 0, byte(number >> 24), byte(number >> 16), byte(number >> 8), byte(number)}, encode(number)...)
	if family == 0 {
		var sum uint32
		for i := 0; i < len(message); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(message[i:]))
		}
		binary.BigEndian.PutUint16(message[2:], ^uint16(sum+sum>>16))
	}
	return message
}

// These are SCTP chunk types (RFC 9260), and the offset of a packet's first chunk.
const (
	chunkInit, chunkInitAck = 1, 2
	sctpHeader              = 12
	// sctpPorts is the first source port. Each probe has a different source port.
	sctpPorts = 10_000
)

// sctpOpening returns an SCTP packet that contains an INIT or INIT ACK chunk.
func sctpOpening(source, target uint16, verification uint32, kind byte, tag uint32) []byte {
	packet := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, source), target)
	packet = binary.BigEndian.AppendUint32(packet, verification)
	packet = append(packet, 0, 0, 0, 0, kind, 0, 0, 20)
	packet = binary.BigEndian.AppendUint32(packet, tag)
	// These are the receive window, the numbers of streams, and the initial sequence number.
	packet = append(packet, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1)
	binary.LittleEndian.PutUint32(packet[8:], crc32.Checksum(packet, crc32.MakeTable(crc32.Castagnoli)))
	return packet
}

// acceptSCTP responds to the opening of an SCTP association. The initiator's tag is the probe's
// number.
func (s *sockets) acceptSCTP(conn net.PacketConn, from net.Addr, data []byte) {
	if len(data) < sctpHeader+20 || data[sctpHeader] != chunkInit {
		return
	}
	source, target, tag := binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:]), binary.BigEndian.Uint32(data[sctpHeader+4:])
	if target == webPort || target == otherPort {
		s.note(tag, false)
		_, _ = conn.WriteTo(sctpOpening(target, source, tag, chunkInitAck, 1), from)
	}
}

func (s *sockets) answeredSCTP(_ net.PacketConn, _ net.Addr, data []byte) {
	if len(data) > sctpHeader && data[sctpHeader] == chunkInitAck {
		s.note(binary.BigEndian.Uint32(data[4:]), true)
	}
}

// send sends a probe. For TCP, it starts a goroutine that ends with the connection, and adds the
// goroutine to wait.
func (s *sockets) send(ctx context.Context, p *probe, number uint32, wait *sync.WaitGroup) {
	switch p.protocol {
	case corev1.ProtocolTCP:
		conn, err := connect(p.address)
		if err != nil {
			p.problem = err
			return
		}
		wait.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
			data := make([]byte, 8)
			if _, err := conn.Write(encode(number)); err != nil {
				return
			}
			if _, err := io.ReadFull(conn, data); err == nil {
				s.answered(data)
			}
		})
	case corev1.ProtocolUDP:
		_, p.problem = s.senders[p.protocol][p.family].WriteTo(encode(number), net.UDPAddrFromAddrPort(p.address))
	case corev1.ProtocolSCTP:
		packet := sctpOpening(sctpPorts+uint16(number%50_000), p.address.Port(), 0, chunkInit, number)
		_, p.problem = s.senders[p.protocol][p.family].WriteTo(packet, &net.IPAddr{IP: p.address.Addr().AsSlice()})
	case icmp:
		_, p.problem = s.senders[p.protocol][p.family].WriteTo(echoRequest(p.family, number), &net.IPAddr{IP: p.address.Addr().AsSlice()})
	}
}

// connect starts to connect to target from the calling thread's network. The first write to the
// returned file waits until the connection is established. Closing the file resets the connection,
// so that no state remains.
func connect(target netip.AddrPort) (*os.File, error) {
	family := unix.AF_INET
	if target.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("create socket: %w", err)
	}
	if err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err == nil {
		if err = unix.Connect(fd, sockaddr(target)); errors.Is(err, unix.EINPROGRESS) {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", target, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), target.String()), nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
