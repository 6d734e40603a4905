package multitenant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/test/kit"
)

// second6 returns a pod's IPv6 address.
func (t tenant) second6(pod string) netip.Addr {
	for _, ip := range t.Pod(pod).Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil && address.Is6() {
			return address
		}
	}
	return netip.Addr{}
}

func join(address netip.Addr, port int) string {
	return netip.AddrPortFrom(address, uint16(port)).String()
}

// headless is a headless service for the pod "far".
const headless = `
apiVersion: v1
kind: Service
metadata: {name: far-pods}
spec:
  clusterIP: None
  ipFamilyPolicy: PreferDualStack
  selector: {app: far}
  ports: [{port: 8080}]
`

// clusterIP6 returns a service's IPv6 cluster IP.
func (t tenant) clusterIP6(test *testing.T, name string) netip.Addr {
	test.Helper()
	service, err := t.Client.CoreV1().Services(t.Namespace).Get(test.Context(), name, metav1.GetOptions{})
	if err != nil {
		test.Fatal(err)
	}
	for _, text := range service.Spec.ClusterIPs {
		if address, err := netip.ParseAddr(text); err == nil && address.Is6() {
			return address
		}
	}
	test.Fatalf("service %s has the addresses %q", name, service.Spec.ClusterIPs)
	return netip.Addr{}
}

// expect waits until a request succeeds or, if want is false, until it fails.
func (s tenants) expect(r request, want bool) {
	s.WaitFor(fmt.Sprintf("%s: %t", r, want), func(context.Context) error {
		if err := r.send(); err != nil == want {
			return fmt.Errorf("%w", errors.Join(err, errors.New("the outcome is the opposite")))
		}
		return nil
	})
}

// TestPodsAndServicesHaveIPv6Addresses checks the IPv6 addresses that other tests also use.
func TestPodsAndServicesHaveIPv6Addresses(t *testing.T) {
	s := sharedTenants(t)
	s.reach(s.blue, s.blue, true)
	for _, pod := range pods() {
		if addresses := s.blue.addresses(pod, ""); len(addresses) != 5 {
			t.Errorf("pod %s and its service have the addresses %q", pod, addresses)
		}
	}
	// A node's IPv4 and IPv6 subnets must have the same number, and a pod must have the same number
	// in both subnets.
	if list := s.OC("get", "hostsubnets"); !strings.Contains(list, "10.129.0.0/23, fd01:0:0:80::/64") {
		t.Errorf("oc get hostsubnets:\n%s", list)
	}
	if list := s.OC("get", "clusternetworks"); !strings.Contains(list, "10.128.0.0/14:9, fd01::/48:64") {
		t.Errorf("oc get clusternetworks:\n%s", list)
	}
	for _, node := range []string{s.NodeName(), second, distant} {
		addresses := s.OC("get", "node", node, "-o", `jsonpath={.spec.podCIDRs} {.status.addresses[?(@.type=="InternalIP")].address}`)
		if strings.Count(addresses, "fd01:") != 1 || strings.Count(addresses, "fd00:") != 1 {
			t.Errorf("node %s has %s", node, addresses)
		}
	}
	s.blue.Apply(headless)
	s.checkName(t, "far", s.blue.clusterIP6(t, "far"))
	s.checkName(t, "far-pods", s.blue.second6("far"))
	s.checkWire6(t)
}

// checkWire6 checks the network ID of IPv6 packets to a different network segment.
func (s tenants) checkWire6(t *testing.T) {
	t.Helper()
	capture, err := s.distant.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	from, to := s.blue.second6("near"), s.blue.second6(distant)
	s.expect(request{s.blue, "near", join(to, 8080), "I am " + s.blue.marker(distant)}, true)
	packet, err := capture.Next(vxlanPort, func(p vxlanpacket.Packet) bool { return p.Source == from && p.Target == to })
	if err != nil || fmt.Sprint(packet.VNI) != s.blue.netID() {
		t.Errorf("network ID %d, %v, want %s", packet.VNI, err, s.blue.netID())
	}
}

// checkName waits until a pod's query for a service returns the wanted AAAA record.
func (s tenants) checkName(t *testing.T, name string, want netip.Addr) {
	t.Helper()
	s.WaitFor("AAAA record of "+name, func(context.Context) error {
		return s.blue.inPod("near", func() error {
			query := new(dns.Msg).SetQuestion(name+"."+s.blue.Namespace+".svc.cluster.local.", dns.TypeAAAA)
			response, err := dns.Exchange(query, "169.254.20.10:53")
			if err != nil {
				return err
			}
			if len(response.Answer) != 1 || response.Answer[0].(*dns.AAAA).AAAA.String() != want.String() {
				return fmt.Errorf("the response is %v, want %s", response.Answer, want)
			}
			return nil
		})
	})
}

// listen6 opens a UDP socket for IPv6 in a pod.
func (t tenant) listen6(test *testing.T, pod string) net.PacketConn {
	test.Helper()
	var conn net.PacketConn
	err := t.inPod(pod, func() (err error) {
		conn, err = net.ListenPacket("udp6", fmt.Sprintf("[::]:%d", port))
		return err
	})
	if err != nil {
		test.Fatal(err)
	}
	test.Cleanup(func() { conn.Close() })
	return conn
}

// claim assigns a pod's device an address that the platform has not allocated to it. It removes the
// address when the test ends.
func (t tenant) claim(test *testing.T, pod string, address netip.Addr) {
	test.Helper()
	change := func(f func(netlink.Link, *netlink.Addr) error) {
		err := t.inPod(pod, func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			ip := &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(64, 128)}
			return f(link, &netlink.Addr{IPNet: ip, Flags: unix.IFA_F_NODAD})
		})
		if err != nil {
			test.Fatal(err)
		}
	}
	change(netlink.AddrAdd)
	test.Cleanup(func() { change(netlink.AddrDel) })
}

// TestForeignIPv6AddressesCannotBypassIsolation sends datagrams from another project's pod. Their
// source addresses do not belong to the pod: they are link-local addresses, or addresses of other
// pods.
func TestForeignIPv6AddressesCannotBypassIsolation(t *testing.T) {
	s := sharedTenants(t)
	receiver := s.blue.listen6(t, "near")
	link, mine := netip.MustParseAddr("fe80::b"), netip.MustParseAddr("fe80::a")
	s.blue.claim(t, "near", link)
	s.blue.claim(t, "far", netip.MustParseAddr("fe80::c"))
	s.red.claim(t, "near", mine)
	s.red.claim(t, "near", s.blue.second6("far"))
	send := func(from tenant, pod string, source, target netip.Addr, text string) error {
		return from.inPod(pod, func() error {
			link, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			// Use the index as the zone, because package net caches interface names.
			zone := strconv.Itoa(link.Attrs().Index)
			for _, address := range []*netip.Addr{&source, &target} {
				if address.IsLinkLocalUnicast() || address.IsLinkLocalMulticast() {
					*address = address.WithZone(zone)
				}
			}
			dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}
			conn, err := dialer.Dial("udp6", join(target, port))
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte(text))
			return err
		})
	}
	allNodes := netip.MustParseAddr("ff02::1")
	target := s.blue.second6("near")
	for text, attack := range map[string][2]netip.Addr{
		"link to link":             {mine, link},
		"own address to link":      {s.red.second6("near"), link},
		"link to own address":      {mine, target},
		"own address":              {s.red.second6("near"), target},
		"address of the project":   {s.blue.second6("far"), target},
		"all nodes of the link":    {mine, allNodes},
		"own address to all nodes": {s.red.second6("near"), allNodes},
	} {
		if err := send(s.red, "near", attack[0], attack[1], text); err != nil {
			t.Logf("%s: %v", text, err)
		}
	}
	s.WaitFor("datagram of the same project", func(context.Context) error {
		if err := send(s.blue, "far", s.blue.second6("far"), target, "honest"); err != nil {
			return err
		}
		_ = receiver.SetReadDeadline(time.Now().Add(time.Second))
		buffer := make([]byte, 64)
		for {
			size, _, err := receiver.ReadFrom(buffer)
			if err != nil || string(buffer[:size]) == "honest" {
				return err
			}
			t.Errorf("a datagram arrives: %s", buffer[:size])
		}
	})
	// The host must not accept router advertisements from pods on its bridge.
	err := s.Do(func() error {
		value, err := os.ReadFile("/proc/sys/net/ipv6/conf/slipway0/accept_ra")
		if err == nil && strings.TrimSpace(string(value)) != "0" {
			err = fmt.Errorf("accept_ra is %s", value)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// outside6 starts a server outside the cluster that responds with the client's IPv6 address.
// outside6 returns the server's address.
func outside6(t *testing.T, c *kit.Cluster) string {
	t.Helper()
	server := http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "caller", r.RemoteAddr)
	})}
	listener, err := net.Listen("tcp6", join(c.SecondGateway, 0))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = server.Serve(listener); close(done) }()
	t.Cleanup(func() { server.Close(); <-done })
	return listener.Addr().String()
}

const blockPolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: block}
spec:
  podSelector: {matchLabels: {app: far}}
  ingress: [{from: [{ipBlock: {cidr: "%s/128"}}]}]
`

func TestPoliciesApplyToIPv6(t *testing.T) {
	s := sharedTenants(t)
	far := func(client string) request {
		return request{s.blue, client, join(s.blue.second6("far"), 8080), "I am " + s.blue.marker("far")}
	}
	far4 := request{s.blue, "near", s.blue.addresses("far", "")[0], "I am " + s.blue.marker("far")}
	s.blue.Apply(fmt.Sprintf(blockPolicy, s.blue.second6("near")))
	s.expect(far("distant"), false)
	s.expect(far4, false)
	s.expect(far("near"), true)
	s.OC("delete", "networkpolicy", "block")
	s.expect(far("distant"), true)
}
