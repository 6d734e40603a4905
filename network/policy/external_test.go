package policy

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// newOutside connects a machine outside the cluster. The machine has the addresses 203.0.113.1
// to 203.0.113.9. The node serves port 80 too.
func (f *fixture) newOutside() {
	f.Helper()
	n := hosttest.NewNamespace(f.T, "outside")
	n.Connect(f.T, "198.51.100.1/24", "198.51.100.2/24")
	n.Do(f.T, func() error {
		for i := range 9 {
			if err := addAddress("eth0", fmt.Sprintf("203.0.113.%d", i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	_, network, err := net.ParseCIDR("203.0.113.0/24")
	f.must(err)
	f.must(netlink.RouteAdd(&netlink.Route{Dst: network, Gw: net.IPv4(198, 51, 100, 2)}))
	n.Serve(f.T, 80)
	n.Serve(f.T, 53)
	f.outside = n
	hosttest.Host().Serve(f.T, 80)
	hosttest.Host().Serve(f.T, 53)
}

// firewall creates or replaces a policy in the shop project.
func (f *fixture) firewall(name string, rules ...string) {
	f.Helper()
	policy := firewallOf("shop", name, rules...)
	policies := f.network.NetworkV1().EgressNetworkPolicies("shop")
	_, err := policies.Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		_, err = policies.Create(f.Context(), policy, metav1.CreateOptions{})
	} else {
		_, err = policies.Update(f.Context(), policy, metav1.UpdateOptions{})
	}
	f.must(err)
}

// external waits until a pod can reach exactly the given addresses. It tries several addresses of
// outside machines and of the pod's node.
func (f *fixture) external(pod, want string) {
	f.Helper()
	addresses := []string{"203.0.113.1:80", "203.0.113.2:80", "203.0.113.2:53", "198.51.100.1:80", "198.51.100.1:53"}
	eventually.Equal(f.T, "external addresses that "+pod+" reaches", func() string {
		results := make([]chan error, len(addresses))
		for i, address := range addresses {
			results[i] = make(chan error, 1)
			go func() {
				_, err := f.pods[pod].Probe("tcp4", address)
				results[i] <- err
			}()
		}
		var reached []string
		for i, address := range addresses {
			if <-results[i] == nil {
				reached = append(reached, address)
			}
		}
		return strings.Join(reached, " ")
	}, want)
}

const everything = "203.0.113.1:80 203.0.113.2:80 203.0.113.2:53 198.51.100.1:80 198.51.100.1:53"

func TestFirewallIsEnforcedAsItChanges(t *testing.T) {
	f := newFixture(t)
	for _, pod := range [][2]string{{"shop", "web"}, {"shop", "db"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	f.newOutside()
	f.start()
	f.external("web", everything)
	f.firewall("default", "Allow 203.0.113.1/32", "Deny 0.0.0.0/0")
	f.external("web", "203.0.113.1:80 198.51.100.1:53")
	f.external("till", everything) // this pod is in another project
	outside := netip.MustParseAddr("203.0.113.2")
	for pod, want := range map[string]bool{"web": true, "till": false} {
		isolated, err := Isolation(f.enforcer.Table, f.enforcer.Networks)(t.Context(), netip.MustParseAddr(f.address[pod]), outside)
		if err != nil || isolated != want {
			t.Errorf("isolation of %s from %s: %t, %v, want %t", pod, outside, isolated, err, want)
		}
	}
	if _, err := f.pods["web"].Ask("tcp4", f.address["till"]+":80"); err != nil {
		t.Errorf("a pod of the cluster: %v", err)
	}
	f.firewall("default", "Deny 0.0.0.0/0", "Allow 203.0.113.1/32") // the first matching rule applies
	f.external("web", "198.51.100.1:53")
	f.firewall("default", "Deny 203.0.113.2/32", "Deny 198.51.100.0/24")
	f.external("web", "203.0.113.1:80 198.51.100.1:53")

	f.firewall("second", "Allow 0.0.0.0/0") // a project with two policies is closed
	f.external("web", "198.51.100.1:53")
	f.external("db", "198.51.100.1:53")
	f.stop() // the kernel keeps enforcing the rules
	f.external("web", "198.51.100.1:53")
	f.start()
	f.must(f.network.NetworkV1().EgressNetworkPolicies("shop").Delete(t.Context(), "default", metav1.DeleteOptions{}))
	f.external("web", everything)
}

// TestFirewallAppliesToAllAddressesOfNodes denies the external addresses of this node and of
// another node. Pods can reach the nodes at other addresses: in the pod network, and at the DNS
// server's address.
func TestFirewallAppliesToAllAddressesOfNodes(t *testing.T) {
	f := newFixture(t)
	for _, pod := range []string{"web", "db"} {
		f.lease("shop", pod)
		f.create("shop", pod)
	}
	f.newOutside()
	const gateway, resolver = "10.129.0.1", "192.0.2.53"
	f.outside.Do(t, func() error { return addAddress("eth0", gateway) })
	f.must(addAddress("lo", resolver))
	f.must(netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.ParseIP(gateway), Mask: net.CIDRMask(32, 32)}, Gw: net.IPv4(198, 51, 100, 2)}))
	f.enforcer.Resolver = resolver + ":53"
	for name, host := range map[string]networkv1.HostSubnet{
		"one": {Subnet: "10.128.1.0/24", HostIP: "198.51.100.1"}, "two": {Subnet: "10.129.0.0/24", HostIP: "198.51.100.2"},
	} {
		host.Name, host.Annotations = name, map[string]string{networkv1.NodeUIDAnnotation: name}
		f.must(f.network.Tracker().Add(&host))
	}
	f.start()
	nodes := []string{"198.51.100.1", "10.128.1.1", resolver, "198.51.100.2", gateway}
	reaches := func(want bool) {
		t.Helper()
		for _, address := range nodes {
			eventually.Equal(t, "access to "+address, func() bool {
				_, err := f.pods["web"].Probe("tcp4", address+":80")
				return err == nil
			}, want)
		}
	}
	reaches(true)
	f.firewall("default", "Deny 198.51.100.0/24")
	reaches(false)
	for _, address := range []string{f.address["db"] + ":80", "203.0.113.1:80", resolver + ":53"} {
		if _, err := f.pods["web"].Ask("tcp4", address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	f.firewall("default", "Allow 198.51.100.0/24", "Deny 0.0.0.0/0")
	reaches(true)
	f.firewall("default", "Deny 0.0.0.0/0")
	reaches(false)
	f.outside.Do(t, func() error { // a node's connection to a pod
		_, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(gateway)}, Timeout: time.Second}).Dial("tcp4", f.address["web"]+":80")
		return err
	})
}

// addAddress adds an address to a device of this network namespace.
func addAddress(device, address string) error {
	link, err := netlink.LinkByName(device) //nolint:forbidigo // of a new namespace
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(32, 32)}})
}

func TestServicesOfThePlatformAreReachable(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.create("shop", "web")
	f.newOutside()
	_, err := f.client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"172.30.0.1"}},
	}, metav1.CreateOptions{})
	f.must(err)
	f.nft(`table ip services { chain c { type nat hook prerouting priority -100;
		ip daddr 172.30.0.1 tcp dport 80 dnat to 203.0.113.1
		ip daddr 172.30.0.2 tcp dport 80 dnat to 203.0.113.1
		ip daddr 172.30.0.3 tcp dport 80 dnat to 198.51.100.1
	}
	}`)
	t.Cleanup(func() { f.nft("delete table ip services") })
	f.firewall("default", "Deny 0.0.0.0/0")
	f.start()
	for address, want := range map[string]bool{
		"172.30.0.1:80": true,  // a service of the platform, on another host
		"172.30.0.2:80": false, // a service of a user with an external endpoint
		"172.30.0.3:80": true,  // a service on the node
	} {
		if _, err := f.pods["web"].Ask("tcp4", address); (err == nil) != want {
			t.Errorf("%s: %v, want access: %t", address, err, want)
		}
	}
}

func TestChangeOfAFirewallEndsConnections(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.create("shop", "web")
	f.newOutside()
	f.start()
	var conn net.Conn
	f.pods["web"].Do(t, func() (err error) {
		conn, err = net.Dial("udp4", "198.51.100.2:80")
		return err
	})
	defer conn.Close()
	echo := func() bool {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, writeErr := conn.Write([]byte("?"))
		_, readErr := conn.Read(make([]byte, 64))
		return writeErr == nil && readErr == nil
	}
	eventually.True(t, "response", echo)
	f.firewall("default", "Deny 198.51.100.2/32")
	eventually.True(t, "end of the connection", func() bool { return !echo() })
	f.firewall("default", "Deny 203.0.113.2/32")
	eventually.True(t, "response after the next change", echo)
}

func TestAddressesOfNamesAreAllowedBeforeTheResponse(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.create("shop", "web")
	f.newOutside()
	f.firewall("default", "Allow www.foo.com", "Allow *.bar.org", "Deny 0.0.0.0/0")
	f.start()
	observe := func(name string, address string) {
		t.Helper()
		f.must(f.enforcer.Names.Observe(t.Context(), name, []netip.Addr{netip.MustParseAddr(address)}, time.Minute))
	}
	for i := range 5 { // the rules precede the response, so the test does not wait
		address := fmt.Sprintf("203.0.113.%d", 3+i)
		observe("www.foo.com.", address)
		if _, err := f.pods["web"].Ask("tcp4", address+":80"); err != nil {
			t.Errorf("after response %d: %v", i, err)
		}
	}
	observe("evil.org.", "203.0.113.1")
	f.external("web", "198.51.100.1:53")
	observe("x.y.bar.org.", "203.0.113.1")
	f.external("web", "203.0.113.1:80 198.51.100.1:53")

	// A new process reads the addresses from the kernel.
	f.stop()
	f.enforcer.Names = NewNames()
	f.start()
	f.external("web", "203.0.113.1:80 198.51.100.1:53")
	f.nft("delete table ip " + f.enforcer.Table)
	f.stop()
	f.start() // the process has the addresses, so it can write the table again
	f.external("web", "203.0.113.1:80 198.51.100.1:53")
}

func TestPoliciesThatDoNotApplyAreReported(t *testing.T) {
	f := newFixture(t)
	notes := make(chan string, 10)
	f.enforcer.Notes(func(text string) { notes <- text })
	f.firewall("one", "Allow 0.0.0.0/0")
	f.firewall("two", "Allow 0.0.0.0/0")
	f.start()
	const want = `project "shop" has 2 EgressNetworkPolicies, so all its external traffic is dropped; delete all but one`
	if note := <-notes; note != want {
		t.Errorf("note %q, want %q", note, want)
	}
	eventually.Equal(t, "events", func() string {
		events, err := f.client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		var texts []string
		for _, event := range events.Items {
			texts = append(texts, event.InvolvedObject.Kind+" "+event.Type+" "+event.Message)
		}
		if err != nil {
			return err.Error()
		}
		return strings.Join(texts, "\n")
	}, "EgressNetworkPolicy Warning "+want)
	f.must(f.network.NetworkV1().EgressNetworkPolicies("shop").Delete(t.Context(), "two", metav1.DeleteOptions{}))
	if note := <-notes; note != "" {
		t.Errorf("note after the repair: %q", note)
	}
}
