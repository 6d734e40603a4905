package multitenant

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/test/kit"
)

// forgery is a frame that a pod sends through a packet socket.
type forgery struct {
	name  string
	frame []byte
}

// forgedText and honestText are payloads that distinguish forged frames from valid frames.
const forgedText, honestText = "forged", "valid"

// frame returns an Ethernet frame.
func frame(to, from net.HardwareAddr, kind uint16, parts ...[]byte) []byte {
	return slices.Concat(to, from, binary.BigEndian.AppendUint16(nil, kind), slices.Concat(parts...))
}

// ipv4 returns an IPv4 packet. fragment contains the packet's flags and fragment offset.
func ipv4(source, target netip.Addr, protocol byte, fragment uint16, options []byte, payload []byte) []byte {
	header := make([]byte, 20)
	header[0] = byte(0x45 + len(options)/4)
	binary.BigEndian.PutUint16(header[2:], uint16(len(header)+len(options)+len(payload)))
	header[5] = 7 // the low byte of the identification field
	binary.BigEndian.PutUint16(header[6:], fragment)
	header[8], header[9] = 64, protocol
	copy(header[12:], source.AsSlice())
	copy(header[16:], target.AsSlice())
	header = append(header, options...)
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum+sum>>16))
	return append(header, payload...)
}

// ipv6 returns an IPv6 packet.
func ipv6(source, target netip.Addr, next byte, payload []byte) []byte {
	header := []byte{0x60, 0, 0, 0, 0, 0, next, 255}
	binary.BigEndian.PutUint16(header[4:], uint16(len(payload)))
	return slices.Concat(header, source.AsSlice(), target.AsSlice(), payload)
}

// datagram returns a UDP datagram to the test's port. It needs no checksum, because receivers read
// it from a packet socket.
func datagram(text string) []byte {
	header := []byte{0, 9, port >> 8, port & 0xff, 0, byte(8 + len(text)), 0, 0}
	return append(header, text...)
}

// device returns the MAC addresses of a pod's device and its gateway, and the device's index.
func (t tenant) device(pod string) (own, gateway net.HardwareAddr, index int, err error) {
	err = t.inPod(pod, func() error {
		link, err := net.InterfaceByName("eth0")
		if err == nil {
			own, index, gateway = link.HardwareAddr, link.Index, gatewayMAC(t.address(pod))
		}
		return err
	})
	return own, gateway, index, err
}

// transmit sends frames from a pod's device through a packet socket.
func (t tenant) transmit(pod string, frames ...[]byte) error {
	_, _, index, err := t.device(pod)
	if err != nil {
		return err
	}
	return t.inPod(pod, func() error {
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		for _, frame := range frames {
			err = errors.Join(err, unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: index}))
		}
		return err
	})
}

// capture starts to capture frames on a pod's device. arrivals returns the texts of the forged and
// valid frames that have arrived since its last call.
func (t tenant) capture(test *testing.T, pod string) (arrivals func() []string) {
	test.Helper()
	var socket int
	err := t.inPod(pod, func() (err error) {
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network byte order
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, all)
		return err
	})
	if err != nil {
		test.Fatal(err)
	}
	test.Cleanup(func() { unix.Close(socket) })
	buffer := make([]byte, 2048)
	return func() (texts []string) {
		for {
			size, from, err := unix.Recvfrom(socket, buffer, 0)
			if err != nil {
				return texts
			}
			if link, isLink := from.(*unix.SockaddrLinklayer); isLink && link.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			for _, text := range []string{forgedText, honestText} {
				if _, after, found := bytes.Cut(buffer[:size], []byte(text)); found {
					texts = append(texts, text+string(after))
				}
			}
		}
	}
}

// forgeries returns frames with which the red pod "near" tries to reach a blue pod. Each payload
// contains the frame's index in the list.
func (s tenants) forgeries(own, gateway net.HardwareAddr, target string) (list []forgery) {
	add := func(name string, build func(text []byte) []byte) {
		text := fmt.Appendf(nil, "%s %d;", forgedText, len(list))
		list = append(list, forgery{name, build(text)})
	}
	me, to := s.red.address("near"), s.blue.address(target)
	victim := net.HardwareAddr(append([]byte{0x0a, 0x58}, s.blue.address("near").AsSlice()...))
	octets := me.As4()
	octets[2], octets[3] = octets[2]&0xfe, 1
	for name, source := range map[string]netip.Addr{
		"a pod of the other project on this host": s.blue.address("near"), "a pod of the other project on another host": s.blue.address("far"),
		"a pod of the other project on a distant host": s.blue.address(distant), "the host in the pod network": netip.AddrFrom4(octets),
		"the host": s.Address, "another host": s.distant.Address, "a machine outside": netip.MustParseAddr("192.0.2.1"), "loopback": netip.MustParseAddr("127.0.0.1"), "its own": me,
	} {
		for destination, mac := range map[string]net.HardwareAddr{"gateway": gateway, "pod": victim, "all": {255, 255, 255, 255, 255, 255}} {
			add(name+" to "+destination, func(text []byte) []byte {
				return frame(mac, own, unix.ETH_P_IP, ipv4(source, to, unix.IPPROTO_UDP, 0, nil, datagram(string(text))))
			})
		}
		add(name+" in a second header", func(text []byte) []byte {
			inner := ipv4(source, to, unix.IPPROTO_UDP, 0, nil, datagram(string(text)))
			return frame(gateway, own, unix.ETH_P_IP, ipv4(me, s.Address, unix.IPPROTO_IPIP, 0, nil, inner))
		})
	}
	const moreFragments = 0x2000
	hop := s.red.address("far").As4()
	add("loose source route", func(text []byte) []byte {
		route := append([]byte{131, 7, 4}, append(hop[:], 0)...)
		return frame(gateway, own, unix.ETH_P_IP, ipv4(me, to, unix.IPPROTO_UDP, 0, route, datagram(string(text))))
	})
	add("first fragment", func(text []byte) []byte {
		return frame(gateway, own, unix.ETH_P_IP, ipv4(me, to, unix.IPPROTO_UDP, moreFragments, nil, append(datagram(string(text)), make([]byte, 16)...)[:24]))
	})
	add("last fragment", func(text []byte) []byte {
		return frame(gateway, own, unix.ETH_P_IP, ipv4(me, to, unix.IPPROTO_UDP, 3, nil, text))
	})
	add("VLAN", func(text []byte) []byte {
		return frame(gateway, own, unix.ETH_P_8021Q, []byte{0, 7, 8, 0}, ipv4(me, to, unix.IPPROTO_UDP, 0, nil, datagram(string(text))))
	})
	add("MAC address of another pod", func(text []byte) []byte {
		return frame(gateway, victim, unix.ETH_P_IP, ipv4(me, to, unix.IPPROTO_UDP, 0, nil, datagram(string(text))))
	})
	return append(list, s.forgeries6(own, gateway, victim, target, len(list))...)
}

// forgeries6 returns forged IPv6 frames, ARP replies and neighbor advertisements.
func (s tenants) forgeries6(own, gateway, victim net.HardwareAddr, target string, first int) (list []forgery) {
	me, to := s.red.second6("near"), s.blue.second6(target)
	text := func() []byte { return fmt.Appendf(nil, "%s %d;", forgedText, first+len(list)) }
	for name, source := range map[string]netip.Addr{
		"IPv6 of a pod on this host": s.blue.second6("near"), "IPv6 of a pod on another host": s.blue.second6("far"), "IPv6 of the host": s.Second,
		"link-local": netip.MustParseAddr("fe80::1"), "its own IPv6": me,
	} {
		for _, mac := range []net.HardwareAddr{gateway, victim} {
			list = append(list, forgery{name, frame(mac, own, unix.ETH_P_IPV6, ipv6(source, to, unix.IPPROTO_UDP, datagram(string(text()))))})
		}
		options := slices.Concat([]byte{unix.IPPROTO_UDP, 0, 1, 4, 0, 0, 0, 0}, datagram(string(text())))
		list = append(list, forgery{name + " with options", frame(gateway, own, unix.ETH_P_IPV6, ipv6(source, to, unix.IPPROTO_HOPOPTS, options))})
		fragment := slices.Concat([]byte{unix.IPPROTO_UDP, 0, 0, 0, 0, 0, 0, 9}, datagram(string(text())))
		list = append(list, forgery{name + " in a fragment", frame(gateway, own, unix.ETH_P_IPV6, ipv6(source, to, unix.IPPROTO_FRAGMENT, fragment))})
	}
	reply := func(address, requester netip.Addr) []byte {
		return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 2}, own, address.AsSlice(), gateway, requester.AsSlice(), text())
	}
	octets := s.blue.address("near").As4()
	octets[2], octets[3] = octets[2]&0xfe, 1
	node := netip.AddrFrom4(octets)
	advertisement := slices.Concat([]byte{136, 0, 0, 0, 0x20, 0, 0, 0}, s.blue.second6("near").AsSlice(), []byte{2, 1}, own, text())
	return append(list,
		forgery{"ARP to the host", frame(gateway, own, unix.ETH_P_ARP, reply(s.blue.address("near"), node))},
		forgery{"ARP to the pod", frame(victim, own, unix.ETH_P_ARP, reply(node, s.blue.address("near")))},
		forgery{"neighbor advertisement", frame(gateway, own, unix.ETH_P_IPV6, ipv6(s.blue.second6("near"), s.Second, unix.IPPROTO_ICMPV6, advertisement))},
		forgery{"neighbor advertisement to the pod", frame(victim, own, unix.ETH_P_IPV6, ipv6(me, s.blue.second6("near"), unix.IPPROTO_ICMPV6, advertisement))},
	)
}

// TestForgedFramesReachNoOtherHost sends forged frames from a pod to another project's pod on each
// host. Only the valid datagram that follows the frames may arrive.
func TestForgedFramesReachNoOtherHost(t *testing.T) {
	s := sharedTenants(t)
	for _, target := range pods() {
		own, gateway, _, err := s.red.device("near")
		if err != nil {
			t.Fatal(err)
		}
		arrivals := s.blue.capture(t, target)
		forged := s.forgeries(own, gateway, target)
		for _, f := range forged {
			if err := s.red.transmit("near", f.frame); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
		sender := "far"
		if target == sender {
			sender = "near"
		}
		mine, node, _, err := s.blue.device(sender)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		s.WaitFor("valid datagram at "+target, func(context.Context) error {
			valid := ipv4(s.blue.address(sender), s.blue.address(target), unix.IPPROTO_UDP, 0, nil, datagram(honestText))
			err := s.blue.transmit(sender, frame(node, mine, unix.ETH_P_IP, valid))
			texts = append(texts, arrivals()...)
			if err == nil && !slices.Contains(texts, honestText) {
				err = fmt.Errorf("the pod has received %q", texts)
			}
			return err
		})
		for _, text := range texts {
			if number, isForged := strings.CutPrefix(text, forgedText+" "); isForged {
				at := 0
				_, _ = fmt.Sscan(number, &at)
				t.Errorf("a forged frame arrives at %s: %s", target, forged[min(at, len(forged)-1)].name)
			}
		}
	}
	s.reach(s.blue, s.blue, true) // their neighbor tables must be unchanged
	s.reach(s.blue, s.red, false)
}

// TestNodePortsOfOtherProjectsAreOpenOnOtherNodes documents a limit of isolation, which is the same
// as in OpenShift 3.11: a node port accepts every client that can reach the node. Only the client's
// own node can identify both pods, and rejects the connection.
func TestNodePortsOfOtherProjectsAreOpenOnOtherNodes(t *testing.T) {
	s := sharedTenants(t)
	hosts := map[string]*kit.Host{"near": s.Cluster, "far": s.second, distant: s.distant}
	var all []request
	var own []bool // true if the request uses the node port of the client's own node
	for client := range hosts {
		for entry, host := range hosts {
			addresses := s.blue.addresses("far", host.Address.String())
			all = append(all, request{s.red, client, addresses[len(addresses)-1], "I am " + s.blue.marker("far")})
			own = append(own, entry == client)
		}
	}
	s.WaitFor("node ports of all nodes except the client's own", func(context.Context) error {
		for i, err := range sendAll(all) {
			if (err != nil) != own[i] {
				return fmt.Errorf("%s, own node: %t: %w", all[i], own[i], cmp.Or(err, errors.New("the node responds")))
			}
		}
		return nil
	})
}

// hasty is a pod that sends packets as soon as it starts.
const hasty = `
apiVersion: v1
kind: Pod
metadata: {name: hasty-%[1]s}
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: %[1]s}
  containers:
  - name: task
    image: %[2]s
    command: [sh, -c, "for address in %[3]s; do wget -T 1 -q -O - http://$address:8080/ 2>/dev/null && break; done || echo blocked"]
---
`

// TestNewPodIsIsolatedFromItsFirstPacket starts pods on all hosts while it kills the process that
// writes the pods' rules.
func TestNewPodIsIsolatedFromItsFirstPacket(t *testing.T) {
	s := sharedTenants(t)
	var addresses []string
	for _, pod := range pods() {
		addresses = append(addresses, s.blue.address(pod).String())
	}
	for _, host := range []*kit.Host{s.Cluster, s.second, s.distant} {
		host.Kill("node")
	}
	hosts := []string{s.NodeName(), second, distant}
	for _, host := range hosts {
		s.red.Apply(fmt.Sprintf(hasty, host, kit.ToolsImage, strings.Join(addresses, " ")))
	}
	for _, host := range hosts {
		s.WaitFor("end of the pod on "+host, func(context.Context) error {
			if phase := s.red.Pod("hasty-" + host).Status.Phase; phase != "Succeeded" {
				return fmt.Errorf("its phase is %s", phase)
			}
			return nil
		})
		if log := s.red.OC("logs", "hasty-"+host); log != "blocked\n" {
			t.Errorf("the pod on %s had a connection: %q", host, log)
		}
	}
}
