package vxlan

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/internal/vxlanpacket"
)

// TestMulticastReachesAllNodes sends packets from pods on one host to a group that two other hosts
// have joined.
func TestMulticastReachesAllNodes(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { checkMulticast(t, "239.1.2.3:80", (*host).pod) })
	t.Run("IPv6", func(t *testing.T) { checkMulticast(t, "[ff05::1:3]:80", (*host).second) })
}

// checkMulticast checks packets to a group. source returns a pod's address of the group's IP
// family.
func checkMulticast(t *testing.T, address string, source func(*host, string) netip.Addr) {
	t.Helper()
	one, two := newHosts(t)
	three, appliance := newHost(t, "three", 3), newHost(t, "four", 4)
	one.peers[three.subnet], three.peers[one.subnet] = Peer{Address: three.address}, Peer{Address: one.address}
	one.peers[appliance.subnet] = Peer{Address: appliance.address, External: true}
	one.ensure()
	three.ensure()
	group := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
	if group.IP.To4() == nil {
		one.enableIPv6(two)
		one.enableIPv6(three)
		two.enableIPv6(one)
		three.enableIPv6(one)
	}
	send := func(pod, text string) {
		t.Helper()
		one.Do(t, func() error {
			link, err := net.InterfaceByName(device)
			if err != nil {
				return err
			}
			dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: source(one, pod).AsSlice()}, Control: func(network, _ string, conn syscall.RawConn) (err error) {
				_ = conn.Control(func(fd uintptr) {
					if network == "udp6" {
						err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, link.Index)
						return
					}
					err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)})
				})
				return err
			}}
			conn, err := dialer.Dial("udp", group.String())
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte(text))
			return err
		})
	}
	listeners := map[*host]*net.UDPConn{}
	for _, h := range []*host{two, three} {
		h.Do(t, func() error {
			link, err := net.InterfaceByName(device)
			if err == nil {
				listeners[h], err = net.ListenMulticastUDP("udp", link, group)
			}
			return err
		})
		t.Cleanup(func() { listeners[h].Close() })
	}
	received := func() (texts string) {
		for _, h := range []*host{two, three} {
			for buffer := make([]byte, 64); ; {
				_ = listeners[h].SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				size, _, err := listeners[h].ReadFrom(buffer)
				if err != nil {
					break
				}
				texts += h.Name + ": " + string(buffer[:size]) + "; "
			}
		}
		return texts
	}
	enable := func(hosts ...*host) {
		for _, h := range []*host{one, two, three} {
			h.networks.Multicast = false
		}
		for _, h := range hosts {
			h.networks.Multicast = true
		}
		for _, h := range []*host{one, two, three} {
			h.refresh()
		}
	}
	wire, capture := newCapture(t, two), newCapture(t, appliance)
	for _, tt := range []struct {
		hosts     []*host
		pod, want string
	}{
		{nil, "till", ""},
		{[]*host{two, three}, "till", ""},
		{[]*host{one, three}, "till", "three: till; "},
		{[]*host{one, two, three}, "new", ""}, // the pod's network is unknown
		{[]*host{one, two, three}, "till", "two: till; three: till; "},
	} {
		enable(tt.hosts...)
		all := ""
		eventually.Equal(t, fmt.Sprintf("%d hosts", len(tt.hosts)), func() string {
			send(tt.pod, tt.pod)
			all = received()
			return all
		}, tt.want)
	}
	send("web", "last")
	if vni := wire.vni("last"); vni != 12 {
		t.Errorf("the network ID is %d", vni)
	}
	// The host that is not a node receives no copy, so the following packet is the first packet
	// that it receives.
	end := vxlanpacket.Packet{VNI: 77, MAC: make(net.HardwareAddr, 6), Source: one.address, Target: appliance.address, Payload: "end"}
	one.Do(t, func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(appliance.address, networkplugin.VXLANPort).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write(end.Encode())
		return err
	})
	if vni := capture.vni(""); vni != end.VNI {
		t.Errorf("the host that is not a node gets a packet with network ID %d", vni)
	}
}
