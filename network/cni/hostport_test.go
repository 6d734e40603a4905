package cni

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/nat"
)

func TestHostPorts(t *testing.T) {
	for _, bridged := range []string{"0", "1"} {
		t.Run("bridge-nf-call-iptables="+bridged, func(t *testing.T) {
			b := newBench(t)
			setSysctl(t, "net/bridge/bridge-nf-call-iptables", bridged)
			machine := hosttest.NewNamespace(t, "machine")
			machine.Connect(t, "192.0.2.1/24", "192.0.2.2/24")
			mappings := ports(
				portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"},
				portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "udp"},
				portMapping{HostPort: 8443, ContainerPort: 80, Protocol: "tcp", HostIP: "192.0.2.1"},
				portMapping{HostPort: 9999, ContainerPort: 80, Protocol: "tcp", HostIP: "2001:db8::1"},
				portMapping{ContainerPort: 81, Protocol: "tcp"},
			)
			web, webAddress := b.pod("web", mappings)
			other, otherAddress := b.pod("other", nil)
			hosttest.Host().Serve(t, 8082)

			b.checkResponse(machine, "tcp4", "192.0.2.1:8080", "web 192.0.2.2")
			b.checkResponse(machine, "udp4", "192.0.2.1:8080", "web 192.0.2.2")
			b.checkResponse(machine, "tcp4", "192.0.2.1:8443", "web 192.0.2.2")
			b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8080", "web 10.128.2.1")
			b.checkResponse(hosttest.Host(), "udp4", "127.0.0.1:8080", "web 10.128.2.1")
			b.checkResponse(hosttest.Host(), "tcp4", "192.0.2.1:8080", "web 192.0.2.1")
			b.checkResponse(other, "tcp4", "192.0.2.1:8080", "web "+otherAddress)
			b.checkResponse(web, "tcp4", "192.0.2.1:8080", "web 10.128.2.1")
			b.checkResponse(web, "tcp4", webAddress+":80", "web "+webAddress)
			if got, err := hosttest.Host().Ask("tcp4", "127.0.0.1:8443"); err == nil {
				t.Errorf("the port of one host address is open on another: %q", got)
			}
			if _, err := b.plugin("CHECK", web, mappings); err != nil {
				t.Error(err)
			}

			for range 2 {
				_, err := b.plugin("DEL", web, mappings)
				b.must(err)
			}
			_, err := b.plugin("DEL", other, nil)
			b.must(err)
			b.nothingLeft()
			if got, err := machine.Ask("tcp4", "192.0.2.1:8080"); err == nil {
				t.Errorf("the host port is open after DEL: %q", got)
			}
		})
	}
}

func TestHostPortsOfIPv6(t *testing.T) {
	b := newBench(t)
	b.enableIPv6()
	b.makeSecondTable()
	machine := hosttest.NewNamespace(t, "machine")
	machine.Connect(t, "2001:db8::1/64", "2001:db8::2/64")
	mappings := ports(
		portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"},
		portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "udp"},
		portMapping{HostPort: 8443, ContainerPort: 80, Protocol: "tcp", HostIP: "2001:db8::1"},
		portMapping{HostPort: 8006, ContainerPort: 80, Protocol: "tcp", HostIP: "::"},
		portMapping{HostPort: 8004, ContainerPort: 80, Protocol: "tcp", HostIP: "0.0.0.0"},
	)
	web, webAddress := b.pod("web", mappings)
	other, otherAddress := b.pod("other", nil)
	second := func(address string) string { return second(netip.MustParseAddr(address)).String() }
	gateway := Gateway(b.config.SecondCIDR).String()

	b.checkResponse(machine, "tcp6", "[2001:db8::1]:8080", "web 2001:db8::2")
	b.checkResponse(machine, "udp6", "[2001:db8::1]:8080", "web 2001:db8::2")
	b.checkResponse(machine, "tcp6", "[2001:db8::1]:8443", "web 2001:db8::2")
	b.checkResponse(machine, "tcp6", "[2001:db8::1]:8006", "web 2001:db8::2")
	b.checkResponse(hosttest.Host(), "tcp6", "[2001:db8::1]:8080", "web 2001:db8::1")
	b.checkResponse(other, "tcp6", "[2001:db8::1]:8080", "web "+second(otherAddress))
	b.checkResponse(web, "tcp6", "[2001:db8::1]:8080", "web "+gateway)
	b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8080", "web 10.128.2.1")
	b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8004", "web 10.128.2.1")
	for _, closed := range []string{"127.0.0.1:8006", "127.0.0.1:8443", "[::1]:8080", "[2001:db8::1]:8004", "[" + gateway + "]:8443"} {
		if got, err := hosttest.Host().Ask("tcp", closed); err == nil {
			t.Errorf("%s is open: %q", closed, got)
		}
	}
	if _, err := b.plugin("CHECK", web, mappings); err != nil {
		t.Error(err)
	}
	// Reconcile publishes the ports of one family again.
	b.must(nat.Delete(t.Context(), nat.Table{Family: "ip6", Name: b.config.NFTTable}))
	b.makeSecondTable()
	if _, err := b.plugin("CHECK", web, mappings); err == nil || !strings.Contains(err.Error(), "3 of 7 exist") {
		t.Errorf("CHECK without the ports of IPv6: %v", err)
	}
	if got := b.reconcile(); got != 1 {
		t.Errorf("reconcile: got %d changes, want one", got)
	}
	b.checkResponse(machine, "tcp6", "[2001:db8::1]:8080", "web 2001:db8::2")
	if _, err := b.plugin("ADD", hosttest.NewNamespace(t, "rival"), ports(portMapping{HostPort: 8006, ContainerPort: 80})); err == nil || !strings.Contains(err.Error(), nat.ErrTaken.Error()) {
		t.Errorf("ADD with a host port in use: got %v", err)
	}
	if got, err := hosttest.Host().Ask("tcp", "127.0.0.1:8006"); err == nil {
		t.Errorf("the rejected pod has a port: %q", got)
	}

	for pod, change := range map[hosttest.Namespace]func(*Config){web: mappings, other: nil} {
		_, err := b.plugin("DEL", pod, change)
		b.must(err)
	}
	b.nothingLeft()
	if got, err := machine.Ask("tcp6", "[2001:db8::1]:8080"); err == nil {
		t.Errorf("the host port %s is open after DEL: %q", webAddress, got)
	}
}

func TestHostPortConflict(t *testing.T) {
	b := newBench(t)
	mapping := ports(portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"})
	// The first pod runs no server, because an open socket would keep the pod's namespace alive.
	first := hosttest.NewNamespace(t, "first")
	b.add(first, mapping)
	second := hosttest.NewNamespace(t, "second")
	_, err := b.plugin("ADD", second, mapping)
	if err == nil || !strings.Contains(err.Error(), nat.ErrTaken.Error()) {
		t.Errorf("ADD with a host port in use: got %v", err)
	}
	if got := len(b.leftovers()); got != 4 {
		t.Errorf("remains of the rejected pod: %v", b.leftovers())
	}
	// A late DEL for the first pod must not remove the port of its successor.
	first.Delete()
	eventually.True(t, "kernel deletes the device of the first pod", func() bool { return !deviceExists(deviceName("first", "eth0")) })
	b.add(second, mapping)
	second.Serve(t, 80)
	_, err = b.plugin("DEL", first, mapping)
	b.must(err)
	b.checkResponse(hosttest.Host(), "tcp4", "127.0.0.1:8080", "second 10.128.2.1")
}

func TestHostLoopbackIsUnreachable(t *testing.T) {
	b := newBench(t)
	hosttest.Host().Serve(t, 8083)
	pod, _ := b.pod("one", nil)
	pod.Do(t, func() error {
		setSysctl(t, "net/ipv4/conf/eth0/route_localnet", "1")
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{
			LinkIndex: link.Attrs().Index,
			Dst:       hostNet(netip.MustParseAddr("127.0.0.2")),
			Gw:        Gateway(b.config.PodCIDR).AsSlice(),
			Table:     unix.RT_TABLE_LOCAL,
		})
	})
	if got, err := pod.Ask("tcp4", "127.0.0.2:8083"); err == nil {
		t.Errorf("a pod reached the host's loopback: %q", got)
	}
}

func TestConnectionsOfPodToItsHostAreLimited(t *testing.T) {
	b := newBench(t)
	listener, err := net.Listen("tcp4", ":8084")
	b.must(err)
	defer listener.Close()
	greedy, _ := b.pod("greedy", nil)
	modest, _ := b.pod("modest", nil)
	address := Gateway(b.config.PodCIDR).String() + ":8084"
	dial := func() (conn net.Conn, err error) {
		if conn, err = net.DialTimeout("tcp4", address, time.Second); err == nil {
			t.Cleanup(func() { conn.Close() })
		}
		return conn, err
	}
	greedy.Do(t, func() error {
		var first net.Conn
		for n := range 1024 {
			conn, err := dial()
			if err != nil {
				return fmt.Errorf("connection %d: %w", n, err)
			}
			first = cmp.Or(first, conn)
		}
		if _, err := dial(); err == nil {
			t.Error("a pod has more than 1,024 connections to its host")
		}
		// Close the connection immediately.
		return errors.Join(first.(*net.TCPConn).SetLinger(0), first.Close())
	})
	modest.Do(t, func() error { _, err := dial(); return err })
	// The kernel recounts the connections at most once per tick.
	eventually.True(t, "a connection after the end of another", func() bool {
		return greedy.Try(func() error { _, err := dial(); return err }) == nil
	})
}

func TestPodCannotFillConntrackTable(t *testing.T) {
	const most, many = 32_768, 48_000
	b := newBench(t)
	greedy, source := b.pod("greedy", nil)
	modest, modestAddress := b.pod("modest", nil)
	host := Gateway(b.config.PodCIDR)
	// A busy machine must not remove connections before they are counted.
	setSysctl(t, "net/netfilter/nf_conntrack_udp_timeout", "600")
	greedy.Do(t, func() error {
		socket, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer socket.Close()
		for n := range many {
			if _, err := socket.WriteToUDPAddrPort([]byte{0}, netip.AddrPortFrom(host, uint16(10_000+n))); err != nil {
				return err
			}
		}
		return nil
	})
	flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	b.must(err)
	count := 0
	for _, flow := range flows {
		if flow.Forward.SrcIP.String() == source {
			count++
		}
	}
	if count > most || count < most/2 {
		t.Errorf("the kernel tracks %d connections of a pod that began %d, want at most %d", count, many, most)
	}
	hosttest.Host().Serve(t, 8085)
	b.checkResponse(modest, "tcp4", host.String()+":8085", "host "+modestAddress)
}
