package multicast

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/spoofcheck"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// group and group6 are the addresses and ports to which the pods send packets.
const group, group6 = "239.1.2.3:5000", "[ff05::1:3]:5000"

// pod is a pod's network namespace, on whose device package spoofcheck checks frames. It records
// the packets that it receives.
type pod struct {
	hosttest.Namespace
	Pod
	listeners []*net.UDPConn // by IP family
}

func newPod(t *testing.T, number int) *pod {
	t.Helper()
	name := fmt.Sprint("pod", number)
	p := &pod{Namespace: hosttest.NewNamespace(t, name)}
	p.Pod = Pod{Device: "to-" + name, Address: netip.AddrFrom4([4]byte{10, 128, byte(number), 2}), SecondAddress: netip.MustParseAddr(fmt.Sprintf("fd01::%d:2", number))}
	gateway := fmt.Sprintf("10.128.%d.1", number)
	p.Connect(t, gateway+"/24", p.Address.String()+"/24")
	p.Do(t, func() error {
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetHardwareAddr(link, cni.HardwareAddress(p.Address)); err != nil {
			return err
		}
		if err := cni.SetIPv6("eth0", true); err != nil {
			return err
		}
		second := &netlink.Addr{IPNet: netlink.NewIPNet(p.SecondAddress.AsSlice()), Flags: cni.AddressFlags(p.SecondAddress)}
		if err := netlink.AddrAdd(link, second); err != nil {
			return err
		}
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		for i, address := range []string{group, group6} {
			listener, err := net.ListenMulticastUDP([]string{"udp4", "udp6"}[i], device, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
			if err != nil {
				return err
			}
			t.Cleanup(func() { listener.Close() })
			p.listeners = append(p.listeners, listener)
		}
		return nil
	})
	if err := spoofcheck.Check("test", spoofcheck.Pod{
		Device: p.Device, Address: p.Address, SecondAddress: p.SecondAddress, MAC: cni.HardwareAddress(p.Address),
		GatewayAddress: netip.MustParseAddr(gateway), GatewayMAC: cni.HardwareAddress(netip.MustParseAddr(gateway)),
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a datagram to the group of the source's IP family. source is one of the pod's
// addresses or a forged address.
func (p *pod) send(t *testing.T, source netip.Addr, text string) {
	t.Helper()
	p.Do(t, func() error {
		to, dialer := group, net.Dialer{LocalAddr: &net.UDPAddr{IP: source.AsSlice()}}
		if source.Is6() {
			to = group6
		}
		conn, err := dialer.Dial("udp", to)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(text))
		return err
	})
}

// ping sends an ICMPv6 echo request to the group, with destination options unless they are empty.
// The kernel sets the checksum.
func (p *pod) ping(t *testing.T, options string) {
	t.Helper()
	p.Do(t, func() error {
		to := &net.IPAddr{IP: netip.MustParseAddrPort(group6).Addr().AsSlice()}
		conn, err := net.ListenIP("ip6:ipv6-icmp", &net.IPAddr{IP: p.SecondAddress.AsSlice()})
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		if options != "" {
			var optionsErr error
			err = raw.Control(func(fd uintptr) {
				optionsErr = unix.SetsockoptString(int(fd), unix.IPPROTO_IPV6, unix.IPV6_DSTOPTS, options)
			})
			if err := errors.Join(err, optionsErr); err != nil {
				return err
			}
		}
		const echoRequest = 128
		_, err = conn.WriteTo([]byte{echoRequest, 0, 0, 0, 0, 1, 0, 1}, to)
		return err
	})
}

// listenICMPv6 returns a connection that receives the ICMPv6 packets of the group.
func (p *pod) listenICMPv6(t *testing.T) (conn *net.IPConn) {
	t.Helper()
	p.Do(t, func() (err error) {
		conn, err = net.ListenIP("ip6:ipv6-icmp", &net.IPAddr{IP: netip.MustParseAddrPort(group6).Addr().AsSlice()})
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// source returns the pod's address of an IP family.
func (p *pod) source(f ipfamily.Family) netip.Addr {
	return [...]netip.Addr{p.Address, p.SecondAddress}[f]
}

// received returns the datagrams of an IP family that have arrived.
func (p *pod) received(f ipfamily.Family) (texts []string) {
	for buffer := make([]byte, 64); ; {
		_ = p.listeners[f].SetReadDeadline(time.Now().Add(time.Millisecond))
		size, _, err := p.listeners[f].ReadFrom(buffer)
		if err != nil {
			return texts
		}
		texts = append(texts, string(buffer[:size]))
	}
}

func TestGroupsReceiveTheirPackets(t *testing.T) {
	var pods []*pod
	for number := range 4 {
		pods = append(pods, newPod(t, number+1))
	}
	table, err := Open("test-multicast", "no-tunnel")
	if err != nil {
		t.Fatal(err)
	}
	// exchange sends a packet from each pod, and returns which senders' packets each pod receives.
	exchange := func(f ipfamily.Family) string {
		for number, p := range pods {
			p.send(t, p.source(f), fmt.Sprint(number))
		}
		var got []string
		for number, p := range pods {
			// The kernel also delivers a pod's own packets to the pod.
			texts := slices.DeleteFunc(p.received(f), func(text string) bool { return text == fmt.Sprint(number) })
			slices.Sort(texts)
			got = append(got, strings.Join(slices.Compact(texts), ","))
		}
		return strings.Join(got, " ")
	}
	expect := func(when, want string) {
		t.Helper()
		eventually.Equal(t, "IPv4 packets "+when, func() string { return exchange(ipfamily.IPv4) }, want)
		eventually.Equal(t, "IPv6 packets "+when, func() string { return exchange(ipfamily.IPv6) }, want)
	}
	apply := func(groups ...Group) {
		t.Helper()
		if err := table.Apply(t.Context(), groups); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	expect("without groups", "   ")
	apply(Group{Local: []Pod{pods[1].Pod, pods[0].Pod, pods[2].Pod}})
	expect("in one group", "1,2 0,2 0,1 ")
	apply(Group{Local: []Pod{pods[0].Pod, pods[1].Pod}}, Group{Local: []Pod{pods[2].Pod, pods[3].Pod}})
	expect("in two groups", "1 0 3 2")

	// A pod cannot use another pod's source address.
	forge := func(source netip.Addr, change func(netlink.Link, *netlink.Addr) error) {
		t.Helper()
		pods[0].Do(t, func() error {
			link, err := netlinksafe.LinkByName("eth0")
			if err != nil {
				return err
			}
			return change(link, &netlink.Addr{IPNet: netlink.NewIPNet(source.AsSlice()), Flags: cni.AddressFlags(source)})
		})
	}
	for _, f := range []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6} {
		source := pods[2].source(f)
		forge(source, netlink.AddrAdd)
		pods[0].send(t, source, "forged")
		expect("with another address", "1 0 3 2")
		forge(source, netlink.AddrDel)
	}

	// ICMPv6 packets are not delivered, even if an extension header hides their type.
	control := pods[1].listenICMPv6(t)
	for _, options := range []string{"", "\x00\x00\x01\x04\x00\x00\x00\x00"} {
		pods[0].ping(t, options)
		expect("after an ICMPv6 packet", "1 0 3 2")
		_ = control.SetReadDeadline(time.Now().Add(time.Millisecond))
		if size, from, err := control.ReadFrom(make([]byte, 64)); err == nil {
			t.Errorf("another pod has received an ICMPv6 packet of %d bytes from %s", size, from)
		}
	}

	// Another program removes the table.
	tx := table.nft.NewTransaction()
	tx.Delete(&knftables.Table{})
	if err := table.nft.Run(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	expect("without a table", "   ")
	if err := table.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(Group{Local: []Pod{pods[0].Pod, pods[1].Pod}})
	expect("with the table again", "1 0  ")

	// The device of a pod is deleted with the pod.
	pods[1].Delete()
	apply(Group{Local: []Pod{pods[0].Pod, pods[2].Pod}})
	pods = []*pod{pods[0], pods[2]}
	expect("after the end of a pod", "1 0")
}
