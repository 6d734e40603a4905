package hosttest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/thread"
)

// Namespace is a network namespace that has a name in /run/netns. It represents a pod or another
// machine.
type Namespace struct {
	Name string
	Path string
}

// NewNamespace creates a namespace that is deleted when the test ends.
func NewNamespace(t *testing.T, name string) Namespace {
	t.Helper()
	err := thread.Run(func() error { // afterwards, the thread is in the new namespace
		handle, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		return handle.Close()
	})
	if err != nil {
		t.Fatalf("create network namespace %q: %v", name, err)
	}
	n := Namespace{Name: name, Path: "/run/netns/" + name}
	t.Cleanup(n.Delete)
	return n
}

// Delete deletes the namespace and its devices. It is idempotent.
func (n Namespace) Delete() { _ = netns.DeleteNamed(n.Name) }

// Do runs f in the namespace. If f returns an error, Do fails the test immediately.
func (n Namespace) Do(t *testing.T, f func() error) {
	t.Helper()
	if err := n.Try(f); err != nil {
		t.Fatalf("in network namespace %q: %v", n.Name, err)
	}
}

// Try runs f in the namespace and returns f's error.
func (n Namespace) Try(f func() error) error {
	if n.Path == "" { // the test's host
		return f()
	}
	return ns.WithNetNSPath(n.Path, func(ns.NetNS) error { return f() })
}

// Host returns the test's own namespace.
func Host() Namespace { return Namespace{Name: "host"} }

// Serve starts a server that responds to each connection or datagram with the namespace's name and
// the client's address.
func (n Namespace) Serve(t *testing.T, port int) {
	t.Helper()
	n.Do(t, func() error {
		address := fmt.Sprintf(":%d", port)
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { listener.Close(); packets.Close() })
		go serveStream(listener, n.Name)
		go servePackets(packets, n.Name)
		return nil
	})
}

// ServeIPv6 works like Serve, for TCP connections over IPv6. Serve cannot accept them, because Go
// checks for IPv6 when the test program starts, before the lo device is up.
func (n Namespace) ServeIPv6(t *testing.T, port int) {
	t.Helper()
	n.Do(t, func() error {
		listener, err := net.Listen("tcp6", fmt.Sprintf("[::]:%d", port))
		if err != nil {
			return err
		}
		t.Cleanup(func() { listener.Close() })
		go serveStream(listener, n.Name)
		return nil
	})
}

func serveStream(listener net.Listener, name string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "%s %s", name, host(conn.RemoteAddr()))
		conn.Close()
	}
}

func servePackets(packets net.PacketConn, name string) {
	buffer := make([]byte, 64)
	for {
		_, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = packets.WriteTo([]byte(name+" "+host(from)), from)
	}
}

func host(a net.Addr) string {
	h, _, _ := net.SplitHostPort(a.String())
	return h
}

// Ask sends a request to a server started by Serve and returns the response. The response contains
// the server's name, and the client address from the server's point of view.
func (n Namespace) Ask(network, address string) (response string, err error) {
	return n.ask(network, address, askTimeout)
}

// Probe works like Ask, but with a shorter timeout if the host itself gets a response. The timeout
// is then a multiple of the host's response time. Use Probe in a condition that a test repeats,
// because Ask takes two seconds if a rule drops the request.
func (n Namespace) Probe(network, address string) (response string, err error) {
	timeout, start := askTimeout, time.Now()
	if _, err := Host().Ask(network, address); err == nil {
		timeout = min(minProbe+20*time.Since(start), askTimeout)
	}
	return n.ask(network, address, timeout)
}

const askTimeout, minProbe = 2 * time.Second, 100 * time.Millisecond

func (n Namespace) ask(network, address string, timeout time.Duration) (response string, err error) {
	err = n.Try(func() error {
		conn, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if strings.HasPrefix(network, "udp") {
			if _, err := conn.Write([]byte("?")); err != nil {
				return err
			}
			buffer := make([]byte, 64)
			size, err := conn.Read(buffer)
			response = string(buffer[:size])
			return err
		}
		data, err := io.ReadAll(conn)
		response = string(data)
		return err
	})
	return response, err
}

// Connect connects the host to another machine with a veth pair that has an address, in CIDR
// notation, at each end. The host is the machine's default gateway.
func (n Namespace) Connect(t *testing.T, hostCIDR, machineCIDR string) {
	t.Helper()
	device := "to-" + n.Name
	peer, err := netns.GetFromName(n.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = device
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(peer))}))
	configure(t, device, hostCIDR)
	gateway, _, _ := net.ParseCIDR(hostCIDR)
	n.Do(t, func() error {
		configure(t, "eth0", machineCIDR)
		return netlink.RouteAdd(&netlink.Route{Gw: gateway})
	})
	t.Cleanup(func() {
		if link, err := netlinksafe.LinkByName(device); err == nil {
			_ = netlink.LinkDel(link)
		}
	})
}

func configure(t *testing.T, device, cidr string) {
	t.Helper()
	link, err := netlinksafe.LinkByName(device)
	must(t, err)
	address, err := netlink.ParseAddr(cidr)
	must(t, err)
	if address.IP.To4() == nil {
		address.Flags = unix.IFA_F_NODAD // otherwise, the address is unusable for a second
	}
	must(t, netlink.AddrAdd(link, address))
	must(t, netlink.LinkSetUp(link))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
