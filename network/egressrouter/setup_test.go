package egressrouter

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// router is a pod with a macvlan device. The host is its gateway in the cluster network. Through
// the macvlan device, the pod reaches two servers, one of which is the gateway to other networks.
type router struct {
	*testing.T
	hosttest.Namespace
	server hosttest.Namespace
}

func newRouter(t *testing.T) *router {
	t.Helper()
	r := &router{t, hosttest.NewNamespace(t, "router"), hosttest.NewNamespace(t, "server")}
	r.Connect(t, "10.128.2.1/24", "10.128.2.9/24")
	r.connect6()
	lo, err := netlink.LinkByName("lo")
	r.must(err)
	for _, address := range []string{"198.51.100.7/32"} { // a client outside the pod's networks
		parsed, err := netlink.ParseAddr(address)
		r.must(err)
		r.must(netlink.AddrReplace(lo, parsed))
	}
	// Create the veth pair that connects the host's uplink to the server.
	namespace, err := netns.GetFromName("server")
	r.must(err)
	defer namespace.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "uplink"
	r.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(namespace))}))
	uplink, err := netlink.LinkByName("uplink")
	r.must(err)
	t.Cleanup(func() { _ = netlink.LinkDel(uplink) })
	r.must(netlink.LinkSetUp(uplink))
	r.server.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		r.must(err)
		for _, address := range []string{
			"192.168.12.1/24", "203.0.113.25/32", "203.0.113.26/32", "203.0.113.27/32", "2001:db8::1/64", "2001:db8:1::25/128", "2001:db8:1::27/128",
		} {
			r.addAddress(link, address)
		}
		return netlink.LinkSetUp(link)
	})
	pod, err := netns.GetFromName("router")
	r.must(err)
	defer pod.Close()
	second := netlink.NewLinkAttrs()
	second.Name, second.ParentIndex, second.Namespace = "macvlan0", uplink.Attrs().Index, netlink.NsFd(int(pod))
	r.must(netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: second, Mode: netlink.MACVLAN_MODE_PRIVATE}))
	r.Do(t, func() error { // like the network plugin, disable IPv6 on the device
		return os.WriteFile("/proc/sys/net/ipv6/conf/macvlan0/disable_ipv6", []byte("1"), 0)
	})
	return r
}

// connect6 adds IPv6 addresses to the connection between the host and the pod.
func (r *router) connect6() {
	r.Helper()
	host, err := netlink.LinkByName("to-router")
	r.must(err)
	r.addAddress(host, "fd01::1/64")
	r.Do(r.T, func() error {
		link, err := netlink.LinkByName("eth0")
		r.must(err)
		r.addAddress(link, "fd01::9/64")
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP("fd01::1")})
	})
}

func (r *router) addAddress(link netlink.Link, cidr string) {
	r.Helper()
	address, err := netlink.ParseAddr(cidr)
	r.must(err)
	if address.IP.To4() == nil {
		address.Flags = unix.IFA_F_NODAD
	}
	r.must(netlink.AddrAdd(link, address))
}

func (r *router) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *router) run(variables map[string]string) {
	r.Helper()
	r.Do(r.T, func() error {
		settings, err := ParseSettings(func(name string) string { return variables[name] })
		if err != nil {
			return err
		}
		return settings.apply()
	})
}

// checkResponse checks the response that a client in the cluster receives. A response contains the
// client's address from the server's point of view.
func (r *router) checkResponse(network, address, want string) {
	r.Helper()
	if got, err := hosttest.Host().Ask(network, address); got != want || want != "" && err != nil {
		r.Errorf("%s to %s: got %q, error %v, want %q", network, address, got, err, want)
	}
}

func TestRouterRedirectsFromItsAddress(t *testing.T) {
	r := newRouter(t)
	for _, port := range []int{80, 443, 8081} {
		r.server.Serve(t, port)
	}
	variables := map[string]string{
		sourceVariable: "192.168.12.99/24", gatewayVariable: "192.168.12.1", modeVariable: initMode,
		destinationVariable: "53 udp 192.168.12.1 8081\n" + guideDestination,
	}
	for range 2 { // the container can restart
		r.run(variables)
		r.checkResponse("tcp4", "10.128.2.9:80", "server 192.168.12.99")
		r.checkResponse("tcp4", "10.128.2.9:8080", "server 192.168.12.99")
		r.checkResponse("tcp4", "10.128.2.9:8443", "server 192.168.12.99")
		r.checkResponse("tcp4", "10.128.2.9:8081", "server 192.168.12.99") // this server is the fallback
		r.checkResponse("udp4", "10.128.2.9:53", "server 192.168.12.99")
	}

	// The response to a client in another network leaves through the cluster network.
	var got string
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(198, 51, 100, 7)}}
	conn, err := dialer.Dial("tcp4", "10.128.2.9:80")
	if err == nil {
		buffer := make([]byte, 64)
		n, _ := conn.Read(buffer)
		got = string(buffer[:n])
		conn.Close()
	}
	if got != "server 192.168.12.99" {
		t.Errorf("client of another network: got %q, error %v", got, err)
	}

	// Without a fallback, connections to other ports are refused.
	variables[destinationVariable] = "80 tcp 203.0.113.25 443"
	r.run(variables)
	r.checkResponse("tcp4", "10.128.2.9:80", "server 192.168.12.99")
	if _, err := hosttest.Host().Ask("tcp4", "10.128.2.9:8081"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("other port: got %v, want a refused connection", err)
	}
}

func TestRouterRedirectsIPv6FromItsAddress(t *testing.T) {
	for name, tt := range map[string]struct{ sources, gateways string }{
		"IPv6":              {"2001:db8::99/64", "2001:db8::1"},
		"without a network": {"2001:db8::99", "2001:db8::1"},
		"both families":     {"192.168.12.99/24,2001:db8::99/64", "192.168.12.1,2001:db8::1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouter(t)
			for _, port := range []int{80, 443, 8081} {
				r.server.ServeIPv6(t, port)
			}
			r.server.Serve(t, 9999)
			destinations := "80 tcp 2001:db8:1::25\n8443 tcp 2001:db8:1::25 443\n2001:db8:1::27"
			if strings.Contains(tt.sources, ",") {
				destinations += "\n203.0.113.27"
			}
			variables := map[string]string{
				sourceVariable: tt.sources, gatewayVariable: tt.gateways, modeVariable: initMode, destinationVariable: destinations,
			}
			for range 2 { // the container can restart
				r.run(variables)
				r.checkResponse("tcp6", "[fd01::9]:80", "server 2001:db8::99")
				r.checkResponse("tcp6", "[fd01::9]:8443", "server 2001:db8::99")
				r.checkResponse("tcp6", "[fd01::9]:8081", "server 2001:db8::99")
			}
			if strings.Contains(tt.sources, ",") {
				r.checkResponse("tcp4", "10.128.2.9:9999", "server 192.168.12.99")
			}
		})
	}
}

func TestRouterIsClosedToOutside(t *testing.T) {
	r := newRouter(t)
	r.Serve(t, 8080)
	r.server.Serve(t, 80)
	r.run(map[string]string{sourceVariable: "192.168.12.99", gatewayVariable: "192.168.12.1", modeVariable: httpProxyMode})
	if got, err := r.Ask("tcp4", "203.0.113.25:80"); got != "server 192.168.12.99" {
		t.Errorf("from the pod: got %q, error %v", got, err)
	}
	r.checkResponse("tcp4", "10.128.2.9:8080", "router 10.128.2.1")
	if got, err := r.server.Ask("tcp4", "192.168.12.99:8080"); err == nil {
		t.Errorf("a machine outside the cluster connected to the pod: %q", got)
	}
	// Without redirection, the pod does not forward packets, not even for machines outside the
	// cluster.
	r.server.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		r.must(err)
		cluster := net.IPNet{IP: net.IPv4(10, 128, 2, 0), Mask: net.CIDRMask(24, 32)}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: &cluster, Gw: net.IPv4(192, 168, 12, 99)})
	})
	hosttest.Host().Serve(t, 8082)
	if got, err := r.server.Ask("tcp4", "10.128.2.1:8082"); err == nil {
		t.Errorf("a machine outside the cluster connected through the pod: %q", got)
	}
}

func TestRouterIsClosedToOutsideOverIPv6(t *testing.T) {
	r := newRouter(t)
	r.ServeIPv6(t, 8080)
	r.server.ServeIPv6(t, 80)
	r.run(map[string]string{
		sourceVariable: "2001:db8::99/64", gatewayVariable: "2001:db8::1", modeVariable: initMode, destinationVariable: "80 tcp 2001:db8:1::25",
	})
	r.checkResponse("tcp6", "[fd01::9]:80", "server 2001:db8::99")
	r.server.Do(t, func() error {
		link, err := netlink.LinkByName("eth0")
		r.must(err)
		_, cluster, err := net.ParseCIDR("fd01::/64")
		r.must(err)
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: cluster, Gw: net.ParseIP("2001:db8::99")})
	})
	hosttest.Host().ServeIPv6(t, 8082)
	for _, address := range []string{"[2001:db8::99]:8080", "[fd01::9]:8080", "[fd01::1]:8082"} {
		if got, err := r.server.Ask("tcp6", address); err == nil {
			t.Errorf("a machine outside of the cluster connected to %s: %q", address, got)
		}
	}
}

func TestRouterNeedsMacvlanDevice(t *testing.T) {
	pod := hosttest.NewNamespace(t, "plain")
	err := pod.Try(func() error { return Settings{}.apply() })
	if err == nil || !strings.Contains(err.Error(), `needs the annotation pod.network.openshift.io/assign-macvlan: "true"`) {
		t.Errorf("got %v", err)
	}
}
