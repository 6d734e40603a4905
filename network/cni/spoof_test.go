package cni

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/spoofcheck"
)

// Payloads of the frames that the tests send.
const forged, valid = "forged", "valid"

var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// spoofing is a bench with an attacker, a victim and their gateway on one bridge.
type spoofing struct {
	*bench
	mallory, alice                                   hosttest.Namespace
	malloryAddress, aliceAddress, gateway            netip.Addr
	malloryMAC, aliceMAC, gatewayMAC, foreignAddress net.HardwareAddr
}

func newSpoofing(t *testing.T) *spoofing { return newSpoofingOn(newBench(t)) }

func newSpoofingOn(b *bench) *spoofing {
	s := &spoofing{bench: b, gateway: Gateway(b.config.PodCIDR), foreignAddress: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	var mallory, alice string
	s.mallory, mallory = b.pod("mallory", nil)
	s.alice, alice = b.pod("alice", nil)
	s.malloryAddress, s.aliceAddress = netip.MustParseAddr(mallory), netip.MustParseAddr(alice)
	s.malloryMAC, s.aliceMAC, s.gatewayMAC = HardwareAddress(s.malloryAddress), HardwareAddress(s.aliceAddress), HardwareAddress(s.gateway)
	return s
}

func ethernet(to, from net.HardwareAddr, kind uint16, data ...[]byte) []byte {
	return slices.Concat(to, from, binary.BigEndian.AppendUint16(nil, kind), slices.Concat(data...))
}

// arp returns an ARP packet in which the sender claims an address.
func arp(operation byte, addr netip.Addr, at net.HardwareAddr, request netip.Addr) []byte {
	return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, operation}, at, addr.AsSlice(), make([]byte, 6), request.AsSlice())
}

// datagram returns a UDP datagram to port 80.
func datagram(from, to netip.Addr) []byte {
	udp := append([]byte{0x10, 0, 0, 80, 0, byte(8 + len(forged)), 0, 0}, forged...)
	packet := slices.Concat([]byte{0x45, 0, 0, byte(20 + len(udp)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}, from.AsSlice(), to.AsSlice())
	var sum uint32
	for i := 0; i < len(packet); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum>>16+sum))
	return append(packet, udp...)
}

// icmp6 returns an ICMPv6 message from the link-local address fe80::9 to all nodes. Type 134 is a
// router advertisement, type 136 a neighbor advertisement.
func icmp6(kind byte) []byte {
	message := slices.Concat([]byte{kind, 0, 0, 0, 64, 0, 7, 8}, make([]byte, 8))
	return slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(message)), unix.IPPROTO_ICMPV6, 255},
		netip.MustParseAddr("fe80::9").AsSlice(), netip.MustParseAddr("ff02::1").AsSlice(), message)
}

// frames returns the frames that the mallory pod sends in its attack.
func (s *spoofing) frames() map[string][]byte {
	const ipv4, arpType, vlan, ipv6 = unix.ETH_P_IP, unix.ETH_P_ARP, unix.ETH_P_8021Q, unix.ETH_P_IPV6
	allNodes, spanningTree := net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0}
	valid := datagram(s.malloryAddress, s.aliceAddress)
	tag := []byte{0, 7, 8, 0}
	return map[string][]byte{
		"ARP reply for the gateway":          ethernet(s.aliceMAC, s.malloryMAC, arpType, arp(2, s.gateway, s.malloryMAC, s.aliceAddress)),
		"ARP reply for another pod":          ethernet(s.gatewayMAC, s.malloryMAC, arpType, arp(2, s.aliceAddress, s.malloryMAC, s.gateway)),
		"ARP announcement of another pod":    ethernet(broadcast, s.malloryMAC, arpType, arp(1, s.aliceAddress, s.malloryMAC, s.aliceAddress)),
		"ARP of another hardware address":    ethernet(broadcast, s.malloryMAC, arpType, arp(1, s.malloryAddress, s.foreignAddress, s.gateway)),
		"ARP request for another pod":        ethernet(broadcast, s.malloryMAC, arpType, arp(1, s.malloryAddress, s.malloryMAC, s.aliceAddress)),
		"packet of another pod":              ethernet(s.gatewayMAC, s.malloryMAC, ipv4, datagram(s.aliceAddress, s.gateway)),
		"packet of the gateway to a pod":     ethernet(s.gatewayMAC, s.malloryMAC, ipv4, datagram(s.gateway, s.aliceAddress)),
		"packet of the gateway":              ethernet(s.aliceMAC, s.gatewayMAC, ipv4, datagram(s.gateway, s.aliceAddress)),
		"packet past the host":               ethernet(s.aliceMAC, s.malloryMAC, ipv4, valid),
		"packet from another MAC address":    ethernet(s.gatewayMAC, s.foreignAddress, ipv4, valid),
		"packet from another pod's MAC":      ethernet(s.gatewayMAC, s.aliceMAC, ipv4, valid),
		"packet with a VLAN tag":             ethernet(s.gatewayMAC, s.malloryMAC, vlan, tag, valid),
		"packet with a VLAN tag to a pod":    ethernet(s.aliceMAC, s.malloryMAC, vlan, tag, valid),
		"packet with VLAN tag 0":             ethernet(s.gatewayMAC, s.malloryMAC, vlan, []byte{0, 0, 8, 0}, valid),
		"packet with two VLAN tags":          ethernet(s.gatewayMAC, s.malloryMAC, unix.ETH_P_8021AD, []byte{0, 7, 0x81, 0}, tag, valid),
		"broadcast":                          ethernet(broadcast, s.malloryMAC, ipv4, datagram(s.malloryAddress, netip.MustParseAddr("255.255.255.255"))),
		"multicast":                          ethernet(net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}, s.malloryMAC, ipv4, datagram(s.malloryAddress, netip.MustParseAddr("224.0.0.1"))),
		"IPv6 router advertisement":          ethernet(allNodes, s.malloryMAC, ipv6, icmp6(134)),
		"IPv6 neighbor advertisement":        ethernet(allNodes, s.malloryMAC, ipv6, icmp6(136)),
		"IPv6 packet to the host":            ethernet(s.gatewayMAC, s.malloryMAC, ipv6, icmp6(128)),
		"spanning tree, priority of a root":  ethernet(spanningTree, s.foreignAddress, 39, []byte{0x42, 0x42, 3}, make([]byte, 36)),
		"LLDP, which teaches a MAC address":  ethernet(net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0xe}, s.foreignAddress, unix.ETH_P_LLDP, []byte{0, 0}),
		"frame that is too short for a type": ethernet(s.gatewayMAC, s.malloryMAC, ipv4, []byte{0x45}),
	}
}

// packetSocket opens a raw socket on a device in a namespace.
func (s *spoofing) packetSocket(in hosttest.Namespace, device string) (fd int) {
	s.Helper()
	in.Do(s.T, func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		protocol := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
			return err
		}
		s.Cleanup(func() { _ = unix.Close(fd) })
		// The timeout applies only if the test fails.
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Attrs().Index})
	})
	return fd
}

// readFrames reads frames until it receives a valid frame, and returns the names of the forged
// frames that it received before that.
func (s *spoofing) readFrames(fd int) (names []string) {
	s.Helper()
	buffer := make([]byte, 2048)
	for {
		n, err := unix.Read(fd, buffer)
		if err != nil {
			s.Fatalf("no valid packet arrives: %v", err)
		}
		if _, name, isForged := bytes.Cut(buffer[:n], []byte(forged)); isForged {
			names = append(names, string(name))
		}
		if bytes.Contains(buffer[:n], []byte(valid)) {
			return names
		}
	}
}

// send sends a valid datagram after the forged frames.
func (s *spoofing) send(to netip.Addr) {
	s.Helper()
	s.mallory.Do(s.T, func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(to, 80).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(valid))
		return err
	})
}

// attack sends frames from the mallory pod. Each frame ends with its name. attack returns the names
// of the frames that the alice pod and the host receive.
func (s *spoofing) attack(frames map[string][]byte) (pod, host []string) {
	s.Helper()
	mallory, alice, bridge := s.packetSocket(s.mallory, "eth0"), s.packetSocket(s.alice, "eth0"), s.packetSocket(hosttest.Host(), "slipway0")
	for name, frame := range frames {
		if _, err := unix.Write(mallory, slices.Concat(frame, []byte(forged+": "+name))); err != nil {
			s.Fatal(err)
		}
	}
	s.send(s.aliceAddress)
	return s.readFrames(alice), s.readFrames(bridge)
}

// packet6 returns an IPv6 packet. next is the protocol number of the payload.
func packet6(next byte, from, to netip.Addr, payload ...byte) []byte {
	return slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(payload)), next, 255}, from.AsSlice(), to.AsSlice(), payload)
}

// enableIPv6 gives IPv6 addresses to the bridge and to pods that start later.
func (b *bench) enableIPv6() {
	b.Helper()
	b.config.SecondCIDR = netip.MustParsePrefix("fd01:0:0:2::/64")
	setSysctl(b.T, "net/ipv6/conf/all/forwarding", "1")
	b.must(SetIPv6(b.config.Bridge, true))
	link, err := netlink.LinkByName(b.config.Bridge)
	b.must(err)
	gateway := Gateway(b.config.SecondCIDR)
	b.must(netlink.AddrAdd(link, &netlink.Addr{IPNet: hostNet(gateway), Flags: AddressFlags(gateway)}))
	b.must(netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: &net.IPNet{
		IP: b.config.SecondCIDR.Addr().AsSlice(), Mask: net.CIDRMask(64, 128),
	}}))
}

// frames6 returns the IPv6 frames that the mallory pod sends in its attack.
func (s *spoofing) frames6() map[string][]byte {
	const ipv6, icmp, udp = unix.ETH_P_IPV6, unix.IPPROTO_ICMPV6, unix.IPPROTO_UDP
	mallory, alice, gateway := second(s.malloryAddress), second(s.aliceAddress), Gateway(s.config.SecondCIDR)
	link, allNodes := netip.MustParseAddr("fe80::9"), netip.MustParseAddr("ff02::1")
	toHost := func(packet []byte) []byte { return ethernet(s.gatewayMAC, s.malloryMAC, ipv6, packet) }
	frames := map[string][]byte{
		"packet of another pod":            toHost(packet6(udp, alice, gateway, 0, 0)),
		"packet of the gateway":            toHost(packet6(udp, gateway, alice, 0, 0)),
		"packet of the link":               toHost(packet6(udp, link, gateway, 0, 0)),
		"packet past the host":             ethernet(s.aliceMAC, s.malloryMAC, ipv6, packet6(udp, mallory, alice, 0, 0)),
		"packet from another MAC address":  ethernet(s.gatewayMAC, s.foreignAddress, ipv6, packet6(udp, mallory, alice, 0, 0)),
		"multicast":                        ethernet(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, s.malloryMAC, ipv6, packet6(udp, mallory, allNodes, 0, 0)),
		"packet with a VLAN tag":           ethernet(s.gatewayMAC, s.malloryMAC, unix.ETH_P_8021Q, []byte{0, 7, 0x86, 0xdd}, packet6(udp, mallory, alice, 0, 0)),
		"router advertisement of the link": toHost(packet6(icmp, link, allNodes, make([]byte, 16)...)),
	}
	for kind := byte(133); kind <= 137; kind++ {
		message := slices.Concat([]byte{kind, 0, 0, 0, 0xa0, 0, 0, 0}, alice.AsSlice())
		frames[fmt.Sprintf("discovery %d", kind)] = toHost(packet6(icmp, mallory, gateway, message...))
		options := slices.Concat([]byte{icmp, 0, 1, 4, 0, 0, 0, 0}, message)
		frames[fmt.Sprintf("discovery %d after options", kind)] = toHost(packet6(unix.IPPROTO_DSTOPTS, mallory, gateway, options...))
	}
	return frames
}

// second returns the IPv6 address of the pod with the given IPv4 address.
func second(address netip.Addr) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 7: 2, 15: address.As4()[3]})
}

func TestForgedIPv6FramesAreDropped(t *testing.T) {
	b := newBench(t)
	b.enableIPv6()
	s := newSpoofingOn(b)
	frames := s.frames6()
	maps.Copy(frames, s.frames())
	if pod, host := s.attack(frames); len(pod)+len(host) > 0 {
		t.Errorf("the pod gets %q, the host gets %q", pod, host)
	}
	target, source := second(s.aliceAddress), second(s.malloryAddress)
	for _, network := range []string{"udp6", "tcp6"} {
		s.checkResponse(s.mallory, network, netip.AddrPortFrom(target, 80).String(), "alice "+source.String())
	}
	s.checkResponse(s.mallory, "udp4", s.aliceAddress.String()+":80", "alice "+s.malloryAddress.String())
	if _, err := s.plugin("CHECK", s.mallory, nil); err != nil {
		t.Error(err)
	}
	if got := s.reconcile(); got != 0 {
		t.Errorf("reconcile: got %d changes, want none", got)
	}
	s.alice.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err == nil && (len(addresses) != 1 || !addresses[0].IP.Equal(target.AsSlice())) {
			t.Errorf("the pod has the addresses %v", addresses)
		}
		return err
	})

	// If the network no longer has IPv6, pods with IPv6 addresses cannot use them.
	s.config.SecondCIDR = netip.Prefix{}
	if got := s.reconcile(); got != 2 {
		t.Errorf("reconcile without IPv6: got %d changes, want one for each pod", got)
	}
	frames["own packet"] = ethernet(s.gatewayMAC, s.malloryMAC, unix.ETH_P_IPV6, packet6(unix.IPPROTO_UDP, source, target, 0, 0))
	if pod, host := s.attack(frames); len(pod)+len(host) > 0 {
		t.Errorf("without IPv6, the pod gets %q, the host gets %q", pod, host)
	}
}

// TestForgedIPv6FramesOfALimitedPodAreDropped verifies that the queue's filters match no frame that
// the source filter drops.
func TestForgedIPv6FramesOfALimitedPodAreDropped(t *testing.T) {
	b := newBench(t)
	b.enableIPv6()
	b.config.RuntimeConfig.Bandwidth = bandwidth{IngressRate: 1 << 30, EgressRate: 1 << 30}
	s := newSpoofingOn(b)
	if pod, host := s.attack(s.frames6()); len(pod)+len(host) > 0 {
		t.Errorf("the pod gets %q, the host gets %q", pod, host)
	}
	queue, err := netlink.LinkByName("ifb" + strings.TrimPrefix(deviceName("mallory", "eth0"), devicePrefix))
	s.must(err)
	before := queue.Attrs().Statistics.TxPackets
	for _, network := range []string{"udp6", "tcp6"} {
		s.checkResponse(s.mallory, network, netip.AddrPortFrom(second(s.aliceAddress), 80).String(), "alice "+second(s.malloryAddress).String())
	}
	queue, err = netlink.LinkByName(queue.Attrs().Name)
	s.must(err)
	if queue.Attrs().Statistics.TxPackets == before {
		t.Error("the packets of the pod avoid the queue")
	}
}

func TestForgedFramesAreDropped(t *testing.T) {
	s := newSpoofing(t)
	if pod, host := s.attack(s.frames()); len(pod)+len(host) > 0 {
		t.Errorf("the pod gets %q, the host gets %q", pod, host)
	}
	s.checkTables()
	s.checkResponse(s.mallory, "udp4", s.aliceAddress.String()+":80", "alice "+s.malloryAddress.String())
}

// checkTables checks that the attacks did not change the tables of the bridge, the host or the pod.
func (s *spoofing) checkTables() {
	s.Helper()
	forwarding, err := netlink.NeighList(0, unix.AF_BRIDGE)
	s.must(err)
	if slices.ContainsFunc(forwarding, func(n netlink.Neigh) bool { return bytes.Equal(n.HardwareAddr, s.foreignAddress) }) {
		s.Errorf("the bridge learned a MAC address: %v", forwarding)
	}
	at := func(in hosttest.Namespace, device string, address netip.Addr) (mac net.HardwareAddr) {
		in.Do(s.T, func() error {
			link, err := netlink.LinkByName(device)
			if err != nil {
				return err
			}
			neighbors, err := netlink.NeighList(link.Attrs().Index, unix.AF_INET)
			for _, n := range neighbors {
				if n.IP.Equal(address.AsSlice()) {
					mac = n.HardwareAddr
				}
			}
			return err
		})
		return mac
	}
	if got := at(hosttest.Host(), "slipway0", s.aliceAddress); !bytes.Equal(got, s.aliceMAC) {
		s.Errorf("the host has %s for the pod, want %s", got, s.aliceMAC)
	}
	if got := at(s.alice, "eth0", s.gateway); !bytes.Equal(got, s.gatewayMAC) {
		s.Errorf("the pod has %s for the gateway, want %s", got, s.gatewayMAC)
	}
	s.alice.Do(s.T, func() error {
		routes, err := netlink.RouteList(nil, unix.AF_INET6)
		if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Gw != nil }) {
			s.Errorf("the pod has IPv6 routes %v", routes)
		}
		return err
	})
}

// TestBridgeDoesNotLearnWithoutRules verifies that the bridge learns no forged address after
// another program has removed the rules, and that Reconcile restores the rules.
func TestBridgeDoesNotLearnWithoutRules(t *testing.T) {
	s := newSpoofing(t)
	s.must(nat.Delete(t.Context(), nat.Table{Family: "netdev", Name: s.config.NFTTable}))
	if pod, host := s.attack(s.frames()); len(pod) == 0 || len(host) == 0 {
		t.Errorf("without rules, the pod gets %q, the host gets %q: the test sends nothing", pod, host)
	}
	s.checkTables()

	if got := s.reconcile(); got != 2 {
		t.Errorf("reconcile: got %d changes, want one for each pod", got)
	}
	if pod, host := s.attack(s.frames()); len(pod)+len(host) > 0 {
		t.Errorf("after the repair, the pod gets %q, the host gets %q", pod, host)
	}
}

func TestReconcileRestoresChecks(t *testing.T) {
	s := newSpoofing(t)
	device := deviceName("alice", "eth0")
	link, err := netlink.LinkByName(device)
	s.must(err)
	bridge, err := netlink.LinkByName(s.config.Bridge)
	s.must(err)
	for name, damage := range map[string]func() error{
		"chain removed":            func() error { return spoofcheck.Remove(s.config.NFTTable, device) },
		"neighbor removed":         func() error { return netlink.NeighDel(neighbor(bridge, s.aliceAddress, s.aliceMAC)) },
		"forwarding entry removed": func() error { return netlink.NeighDel(forwardingEntry(link, s.aliceAddress)) },
		"chain of another address": func() error {
			l := lease{Device: device, Address: s.malloryAddress}
			return spoofcheck.Check(s.config.NFTTable, s.config.source(l))
		},
	} {
		s.must(damage())
		if first, second := s.reconcile(), s.reconcile(); first != 1 || second != 0 {
			t.Errorf("%s: got %d changes and then %d, want 1 and 0", name, first, second)
		}
	}
	s.checkResponse(s.alice, "udp4", s.malloryAddress.String()+":80", "mallory "+s.aliceAddress.String())
}

func TestDelRemovesChecks(t *testing.T) {
	s := newSpoofing(t)
	_, err := s.plugin("DEL", s.mallory, nil)
	s.must(err)
	chains, err := spoofcheck.List(s.config.NFTTable)
	s.must(err)
	neighbors, err := netlink.NeighList(0, unix.AF_INET)
	s.must(err)
	if len(chains) != 1 || slices.ContainsFunc(neighbors, func(n netlink.Neigh) bool { return n.IP.Equal(s.malloryAddress.AsSlice()) }) {
		t.Errorf("remaining: chains %v, neighbors %v", chains, neighbors)
	}
}
