package vxlan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// device is the name of the VXLAN device.
const device = "vxlan_sys_4789"

// host is a node whose pods are addresses on a bridge. A router connects all hosts.
type host struct {
	hosttest.Namespace
	t        *testing.T
	address  netip.Addr
	subnet   netip.Prefix
	tunnel   *Tunnel
	networks Networks
	peers    map[netip.Prefix]Peer
	port     int
	// absent means that the host has no VXLAN device.
	dualStack, absent bool
}

// newHost creates a host on its own network segment. Its pods are web (network ID 12), till
// (network ID 13) and admin (global).
func newHost(t *testing.T, name string, number int) *host {
	t.Helper()
	h := &host{
		Namespace: hosttest.NewNamespace(t, name), t: t,
		address: netip.AddrFrom4([4]byte{192, 0, byte(number), 2}),
		subnet:  netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128, byte(number), 0}), 24),
		tunnel:  &Tunnel{}, peers: map[netip.Prefix]Peer{}, port: networkplugin.VXLANPort,
	}
	h.Connect(t, fmt.Sprintf("192.0.%d.1/24", number), h.address.String()+"/24")
	h.networks = Networks{Plugin: networkplugin.Multitenant, Pods: map[netip.Addr]uint32{h.pod("web"): 12, h.pod("till"): 13, h.pod("admin"): 0}}
	h.run("ip", "link", "set", "lo", "up")
	h.run("ip", "link", "add", "pods", "type", "bridge")
	for _, address := range []netip.Addr{gateway(h.subnet), h.pod("web"), h.pod("till"), h.pod("admin"), h.pod("new")} {
		h.run("ip", "address", "add", address.String()+"/24", "dev", "pods")
	}
	for _, name := range []string{"node", "web", "till", "admin", "new"} {
		h.run("ip", "address", "add", h.second(name).String()+"/64", "dev", "pods", "nodad")
	}
	h.run("ip", "link", "set", "pods", "up")
	h.follow()
	return h
}

// follow makes the tunnel use the host's networks.
func (h *host) follow() {
	h.tunnel.Follow(func() (Networks, error) { return h.networks, nil }, func() {})
}

// pod returns a pod's address. The network of the pod "new" is unknown.
func (h *host) pod(name string) netip.Addr {
	octets := h.subnet.Addr().As4()
	octets[3] = map[string]byte{"node": 1, "web": 2, "till": 3, "admin": 4, "new": 5}[name]
	return netip.AddrFrom4(octets)
}

// secondSubnet returns the host's IPv6 subnet, and second returns a pod's IPv6 address.
func (h *host) secondSubnet() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 7: h.subnet.Addr().As4()[2]}), 64)
}

func (h *host) second(name string) netip.Addr {
	octets := h.secondSubnet().Addr().As16()
	octets[15] = h.pod(name).As4()[3]
	return netip.AddrFrom16(octets)
}

// enableIPv6 gives the host's pods IPv6 addresses that another host can reach.
func (h *host) enableIPv6(other *host) {
	h.t.Helper()
	h.dualStack = true
	for _, device := range []string{"all", "pods"} {
		h.run("sysctl", "-qw", "net.ipv6.conf."+device+".forwarding=1")
	}
	h.peers[other.secondSubnet()] = Peer{Address: other.address, Gateway: gateway(other.subnet)}
	for _, name := range []string{"web", "till", "admin"} {
		h.networks.Pods[h.second(name)] = h.networks.Pods[h.pod(name)]
	}
	h.ensure()
}

func (h *host) run(command ...string) string {
	h.t.Helper()
	var output []byte
	h.Do(h.t, func() (err error) {
		output, err = exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", command, err, output)
		}
		return err
	})
	return string(output)
}

// device returns the settings of the host's device.
func (h *host) device() Device {
	d := Device{Name: device, Absent: h.absent, Port: h.port, MTU: 1450, Subnet: h.subnet, Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("10.64.0.0/16")}, Address: h.address}
	if h.dualStack {
		d.SecondSubnet, d.Pods = h.secondSubnet(), append(d.Pods, netip.MustParsePrefix("fd01::/48"))
	}
	return d
}

// ensure creates or repairs the host's device.
func (h *host) ensure() {
	h.t.Helper()
	h.Do(h.t, func() error { return h.tunnel.Ensure(h.device(), h.peers) })
	for subnet, peer := range h.peers {
		switch {
		case peer.Device != 0:
			h.run("ip", "route", "replace", subnet.String(), "via", peer.Address.String())
		case peer.External:
			h.run("ip", "route", "replace", subnet.String(), "dev", device)
		default:
			h.run("ip", "route", "replace", subnet.String(), "via", gateway(subnet).String(), "dev", device, "onlink")
		}
	}
}

func (h *host) refresh() {
	h.t.Helper()
	h.Do(h.t, h.tunnel.Refresh)
}

// newHosts returns two hosts that are peers of each other.
func newHosts(t *testing.T) (one, two *host) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	one, two = newHost(t, "one", 1), newHost(t, "two", 2)
	one.peers[two.subnet], two.peers[one.subnet] = Peer{Address: two.address}, Peer{Address: one.address}
	one.ensure()
	two.ensure()
	return one, two
}

// listener receives datagrams on port 80 of all pods on a host.
type listener struct {
	net.PacketConn
	t *testing.T
}

func (h *host) listen() listener {
	h.t.Helper()
	var conn net.PacketConn
	h.Do(h.t, func() (err error) {
		conn, err = net.ListenPacket("udp", ":80")
		return err
	})
	h.t.Cleanup(func() { conn.Close() })
	return listener{conn, h.t}
}

// next returns the next datagram.
func (l listener) next() string {
	l.t.Helper()
	buffer := make([]byte, 64)
	_ = l.SetReadDeadline(time.Now().Add(10 * time.Second))
	size, _, err := l.ReadFrom(buffer)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(buffer[:size])
}

// send sends a datagram from a pod or the node to an address on another host.
func (h *host) send(from string, to netip.Addr, text string) {
	h.t.Helper()
	h.Do(h.t, func() error {
		source := h.pod(from)
		if to.Is6() {
			source = h.second(from)
		}
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: source.AsSlice()}}
		conn, err := dialer.Dial("udp", netip.AddrPortFrom(to, 80).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(text))
		return err
	})
}

// capture captures the frames between the router and a host.
type capture struct {
	*vxlanpacket.Capture
	t *testing.T
}

func newCapture(t *testing.T, h *host) capture {
	t.Helper()
	c, err := vxlanpacket.NewCapture("to-" + h.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return capture{c, t}
}

// vni returns the network ID of the VXLAN packet that contains the given text.
func (c capture) vni(text string) uint32 {
	c.t.Helper()
	packet, err := c.Next(networkplugin.VXLANPort, func(p vxlanpacket.Packet) bool { return strings.Contains(p.Payload, text) })
	if err != nil {
		c.t.Fatalf("capture of %q: %v", text, err)
	}
	return packet.VNI
}

func TestPacketsHaveTheNetworkIDOfTheSender(t *testing.T) {
	one, two := newHosts(t)
	listener, wire := two.listen(), newCapture(t, two)
	for i, tt := range []struct {
		plugin, from, to string
		want             uint32
	}{
		{networkplugin.Multitenant, "web", "web", 12},
		{networkplugin.Multitenant, "till", "till", 13},
		{networkplugin.Multitenant, "till", "admin", 13},
		{networkplugin.Multitenant, "admin", "web", 0},
		{networkplugin.Multitenant, "node", "till", 0},
		{networkplugin.NetworkPolicy, "web", "till", 12},
		{networkplugin.Subnet, "web", "till", 0},
	} {
		one.networks.Plugin, two.networks.Plugin = tt.plugin, tt.plugin
		one.refresh()
		two.refresh()
		text := fmt.Sprintf("packet %d", i)
		one.send(tt.from, two.pod(tt.to), text)
		if got := wire.vni(text); got != tt.want {
			t.Errorf("%s: network ID from %s to %s is %d, want %d", tt.plugin, tt.from, tt.to, got, tt.want)
		}
		if got := listener.next(); got != text {
			t.Errorf("%s: from %s to %s: %q arrived, want %q", tt.plugin, tt.from, tt.to, got, text)
		}
	}
}

func TestNetworksChangeForRunningPods(t *testing.T) {
	one, two := newHosts(t)
	listener, wire := two.listen(), newCapture(t, two)
	for _, tt := range []struct {
		name    string
		sender  map[netip.Addr]uint32
		from    string
		arrives bool
	}{
		{"a pod without a network", map[netip.Addr]uint32{}, "new", false},
		{"its network is available", map[netip.Addr]uint32{one.pod("new"): 12}, "new", true},
		{"its project is isolated", map[netip.Addr]uint32{one.pod("new"): 99}, "new", false},
		{"its project is global", map[netip.Addr]uint32{one.pod("new"): 0}, "new", true},
		{"the pod ends", map[netip.Addr]uint32{}, "new", false},
	} {
		one.networks.Pods = tt.sender
		one.refresh()
		one.send(tt.from, two.pod("web"), tt.name)
		one.send("node", two.pod("web"), "end")
		got := listener.next()
		if tt.arrives && got == tt.name {
			got = listener.next()
		} else if tt.arrives {
			t.Errorf("%s: the packet does not arrive", tt.name)
		}
		if got != "end" {
			t.Errorf("%s: %q arrives", tt.name, got)
		}
		wire.vni("end")
	}
}

// forgery is a VXLAN packet that an attacker sends.
type forgery struct {
	from     *host // the host whose address is the source of the UDP packet
	vni      uint32
	source   netip.Addr
	target   netip.Addr
	protocol uint16
}

func (f forgery) send(t *testing.T, to *host, text string) {
	t.Helper()
	f.from.Do(t, func() error {
		conn, err := net.Dial("udp4", netip.AddrPortFrom(to.address, networkplugin.VXLANPort).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		packet := vxlanpacket.Packet{
			VNI: f.vni, MAC: cni.HardwareAddress(gateway(to.subnet)), Source: f.source, Target: f.target, Protocol: f.protocol, Port: 80, Payload: text,
		}
		_, err = conn.Write(packet.Encode())
		return err
	})
}

func TestForgedPacketsAreDropped(t *testing.T) {
	one, two := newHosts(t)
	foreign := newHost(t, "foreign", 3)
	listener := two.listen()
	web, till, admin := one.pod("web"), one.pod("till"), one.pod("admin")
	const ipv4 = 0x0800
	for _, tt := range []struct {
		name    string
		plugin  string
		packet  forgery
		arrives bool
	}{
		{"the same network", networkplugin.Multitenant, forgery{one, 12, web, two.pod("web"), ipv4}, true},
		{"from the global network", networkplugin.Multitenant, forgery{one, 0, admin, two.pod("web"), ipv4}, true},
		{"to the global network", networkplugin.Multitenant, forgery{one, 12, web, two.pod("admin"), ipv4}, true},
		{"to the node", networkplugin.Multitenant, forgery{one, 12, web, two.pod("node"), ipv4}, true},
		{"another network", networkplugin.Multitenant, forgery{one, 13, till, two.pod("web"), ipv4}, false},
		{"a pod without a network", networkplugin.Multitenant, forgery{one, 12, web, two.pod("new"), ipv4}, false},
		{"another network in another mode", networkplugin.NetworkPolicy, forgery{one, 13, till, two.pod("web"), ipv4}, true},
		{"another network in flat mode", networkplugin.Subnet, forgery{one, 13, till, two.pod("web"), ipv4}, true},
		{"a host outside the cluster", networkplugin.Subnet, forgery{foreign, 0, web, two.pod("web"), ipv4}, false},
		{"a host outside the cluster, with its own address", networkplugin.Subnet, forgery{foreign, 0, foreign.address, two.pod("web"), ipv4}, false},
		{"an address outside the host's subnet", networkplugin.Subnet, forgery{one, 0, netip.MustParseAddr("10.128.9.2"), two.pod("web"), ipv4}, false},
		{"an address of the receiver's subnet", networkplugin.Subnet, forgery{one, 0, two.pod("till"), two.pod("web"), ipv4}, false},
		{"the address of the host", networkplugin.Subnet, forgery{one, 0, one.address, two.pod("web"), ipv4}, false},
		{"to an address of the receiver outside the pod network", networkplugin.Subnet, forgery{one, 0, web, two.address, ipv4}, false},
		{"another protocol", networkplugin.Subnet, forgery{one, 0, web, two.pod("web"), 0x86dd}, false},
	} {
		two.networks.Plugin = tt.plugin
		two.refresh()
		tt.packet.send(t, two, tt.name)
		forgery{one, 0, one.pod("admin"), two.pod("admin"), ipv4}.send(t, two, "end")
		got := listener.next()
		if tt.arrives && got == tt.name {
			got = listener.next()
		} else if tt.arrives {
			t.Errorf("%s: the packet does not arrive", tt.name)
		}
		if got != "end" {
			t.Errorf("%s: %q arrives", tt.name, got)
		}
	}
}

// TestApplianceExchangesPackets connects a host that uses the kernel's own VXLAN device, as an
// appliance does.
func TestApplianceExchangesPackets(t *testing.T) {
	one, _ := newHosts(t)
	appliance := newHost(t, "appliance", 3)
	appliance.run("ip", "link", "add", device, "type", "vxlan", "id", "0", "dstport", fmt.Sprint(networkplugin.VXLANPort), "remote", one.address.String(), "local", appliance.address.String())
	appliance.run("ip", "address", "add", gateway(appliance.subnet).String()+"/32", "dev", device)
	appliance.run("ip", "link", "set", device, "mtu", "1450", "up")
	appliance.run("ip", "route", "add", one.subnet.String(), "dev", device, "src", gateway(appliance.subnet).String())
	one.peers[appliance.subnet] = Peer{Address: appliance.address, External: true, FixedVNI: true}
	one.ensure()

	listener, wire := appliance.listen(), newCapture(t, appliance)
	one.send("web", appliance.pod("node"), "to the appliance")
	if got := wire.vni("to the appliance"); got != 0 {
		t.Errorf("network ID of a packet to a host with a fixed one: %d", got)
	}
	if got := listener.next(); got != "to the appliance" {
		t.Errorf("the appliance gets %q", got)
	}
	pods := one.listen()
	appliance.send("node", one.pod("web"), "from the appliance")
	if got := pods.next(); got != "from the appliance" {
		t.Errorf("the pod gets %q", got)
	}
	one.peers[appliance.subnet] = Peer{Address: appliance.address, External: true}
	one.ensure()
	one.send("till", appliance.pod("node"), "to another network")
	if got := wire.vni("to another network"); got != 13 {
		t.Errorf("network ID of a packet to a host without a fixed one: %d", got)
	}
}

func TestRestartedProcessContinues(t *testing.T) {
	one, two := newHosts(t)
	listener := two.listen()
	index := strings.Split(two.run("ip", "-o", "link", "show", device), ":")[0]
	one.send("web", two.pod("web"), "before")
	if got := listener.next(); got != "before" {
		t.Errorf("%q arrived", got)
	}
	// If the process exits, its files are closed, and the kernel keeps the device and the programs.
	two.tunnel.programs.close()
	one.send("web", two.pod("web"), "without a process")
	if got := listener.next(); got != "without a process" {
		t.Errorf("%q arrived", got)
	}
	two.tunnel = &Tunnel{}
	two.follow()
	two.ensure()
	one.send("web", two.pod("web"), "after")
	if got := listener.next(); got != "after" {
		t.Errorf("%q arrived", got)
	}
	if got := strings.Split(two.run("ip", "-o", "link", "show", device), ":")[0]; got != index {
		t.Errorf("the restart replaced device %s with %s", index, got)
	}
	two.networks.Pods[two.pod("web")] = 99
	two.refresh()
	one.send("web", two.pod("web"), "isolated")
	one.send("admin", two.pod("web"), "end")
	if got := listener.next(); got != "end" {
		t.Errorf("%q arrived at an isolated pod", got)
	}

	two.port, one.port = 4790, 4790
	one.ensure()
	two.ensure()
	one.send("admin", two.pod("web"), "other port")
	if got := listener.next(); got != "other port" {
		t.Errorf("%q arrived at another port", got)
	}
	for range 2 {
		two.Do(t, func() error { return two.tunnel.Remove(device) })
	}
	if links := two.run("ip", "link"); strings.Contains(links, device) {
		t.Errorf("the device remains:\n%s", links)
	}
}

// TestTunnelWithoutNetworksAcceptsNothing verifies that a device is not up before its programs have
// received the networks.
func TestTunnelWithoutNetworksAcceptsNothing(t *testing.T) {
	one := newHost(t, "one", 1)
	one.tunnel.Follow(func() (Networks, error) { return Networks{}, errors.New("no leases") }, func() {})
	err := one.Try(func() error {
		return one.tunnel.Ensure(Device{Name: device, Port: networkplugin.VXLANPort, MTU: 1450, Subnet: one.subnet, Address: one.address}, nil)
	})
	if err == nil || !strings.Contains(err.Error(), "no leases") {
		t.Errorf("error: %v", err)
	}
	if links := one.run("ip", "link"); strings.Contains(links, device) {
		t.Errorf("the device exists:\n%s", links)
	}
	one.run("ip", "link", "add", device, "type", "bridge")
	one.follow()
	err = one.Try(func() error {
		return one.tunnel.Ensure(Device{Name: device, Port: networkplugin.VXLANPort, MTU: 1450, Subnet: one.subnet, Address: one.address}, nil)
	})
	if err == nil || !strings.Contains(err.Error(), `in use by a device of type "bridge"`) {
		t.Errorf("error: %v", err)
	}
}

func TestIPv6PacketsHaveTheNetworkIDOfTheSender(t *testing.T) {
	one, two := newHosts(t)
	one.enableIPv6(two)
	two.enableIPv6(one)
	listener, wire := two.listen(), newCapture(t, two)
	for i, tt := range []struct {
		from, to string
		want     uint32
	}{{"web", "web", 12}, {"till", "till", 13}, {"till", "admin", 13}, {"admin", "web", 0}, {"node", "till", 0}} {
		text := fmt.Sprintf("IPv6 %d", i)
		one.send(tt.from, two.second(tt.to), text)
		if got := wire.vni(text); got != tt.want {
			t.Errorf("%s to %s: network ID %d, want %d", tt.from, tt.to, got, tt.want)
		}
		if got := listener.next(); got != text {
			t.Errorf("%s to %s: %q arrives, want %q", tt.from, tt.to, got, text)
		}
	}
	// Packets from other networks and to unknown pods do not arrive. The last packet arrives.
	one.send("till", two.second("web"), "other network")
	one.send("web", two.second("new"), "to a pod without a network")
	one.send("new", two.second("web"), "from a pod without a network")
	one.send("web", two.second("web"), "same network")
	if got := listener.next(); got != "same network" {
		t.Errorf("%q arrives", got)
	}
	// If its pods have no IPv6 addresses, a host drops IPv6 packets.
	two.dualStack = false
	delete(two.peers, one.secondSubnet())
	two.ensure()
	one.send("web", two.second("web"), "no IPv6")
	one.send("web", two.pod("web"), "IPv4")
	if got := listener.next(); got != "IPv4" {
		t.Errorf("%q arrives", got)
	}
}
