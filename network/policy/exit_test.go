package policy

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

// egress sets the egress addresses of the shop project and of this host.
func (f *fixture) egress(project, host []string) {
	f.Helper()
	namespace := &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, NetName: "shop", NetID: 1 << 14}
	for _, address := range project {
		namespace.EgressIPs = append(namespace.EgressIPs, networkv1.NetNamespaceEgressIP(address))
	}
	subnet := &networkv1.HostSubnet{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Host: "one", HostIP: "198.51.100.1", Subnet: "10.128.0.0/23"}
	for _, address := range host {
		subnet.EgressIPs = append(subnet.EgressIPs, networkv1.HostSubnetEgressIP(address))
	}
	namespaces, subnets := f.network.NetworkV1().NetNamespaces(), f.network.NetworkV1().HostSubnets()
	if _, err := namespaces.Create(f.Context(), namespace, metav1.CreateOptions{}); err != nil {
		_, err = namespaces.Update(f.Context(), namespace, metav1.UpdateOptions{})
		f.must(err)
	}
	if _, err := subnets.Create(f.Context(), subnet, metav1.CreateOptions{}); err != nil {
		_, err = subnets.Update(f.Context(), subnet, metav1.UpdateOptions{})
		f.must(err)
	}
}

// waitForSource waits until a pod has the given source address outside the cluster. If want is
// empty, it waits until the pod cannot connect.
func (f *fixture) waitForSource(pod, want string) {
	f.Helper()
	if want != "" {
		want = "outside " + want
	}
	eventually.Equal(f.T, "source address of "+pod, func() string {
		response, _ := f.pods[pod].Probe("tcp4", "203.0.113.1:80")
		return response
	}, want)
}

func TestExternalTrafficOfProjectHasEgressAddress(t *testing.T) {
	f := newFixture(t)
	for _, pod := range [][2]string{{"shop", "web"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	f.newOutside()
	t.Cleanup(func() {
		if err := egressip.Release(); err != nil {
			t.Error(err)
		}
	})
	const first, second = "198.51.100.77", "198.51.100.78"
	f.egress([]string{first}, nil)
	f.start()
	f.waitForSource("web", "") // the address is not assigned to a host
	f.waitForSource("till", f.address["till"])
	outside := netip.MustParseAddr("203.0.113.1")
	for pair, want := range map[[2]string]bool{{"web", "till"}: false, {"web", ""}: true, {"till", ""}: false} {
		to := outside
		if pair[1] != "" {
			to = netip.MustParseAddr(f.address[pair[1]])
		}
		isolated, err := Isolation(f.enforcer.Table, f.enforcer.Networks)(t.Context(), netip.MustParseAddr(f.address[pair[0]]), to)
		if err != nil || isolated != want {
			t.Errorf("isolation of %s from %s: %t, %v, want %t", pair[0], to, isolated, err, want)
		}
	}

	f.egress([]string{first}, []string{first, second})
	f.waitForSource("web", first)
	if rules := hosttest.Run(t, "ip rule"); !strings.Contains(rules, exitTable) {
		t.Errorf("no rule selects the table %s:\n%s", exitTable, rules)
	}
	f.waitForSource("till", f.address["till"])
	if _, err := f.outside.Ask("tcp4", first+":80"); err == nil {
		t.Error("the host accepts connections to an egress address")
	}
	if _, err := f.pods["web"].Ask("tcp4", f.address["till"]+":80"); err != nil {
		t.Errorf("a pod of the cluster: %v", err)
	}
	f.stop() // the kernel keeps enforcing the rules
	f.waitForSource("web", first)
	f.start()

	// After a change, a socket that is already open uses the new source address and keeps working.
	var conn net.Conn
	f.pods["web"].Do(t, func() (err error) {
		conn, err = net.Dial("udp4", "198.51.100.2:80") // the source address of the responses
		return err
	})
	defer conn.Close()
	wait := func(want string) {
		t.Helper()
		f.waitForSource("web", want)
		eventually.Equal(t, "source address of an open sender", func() string {
			buffer := make([]byte, 64)
			_, _ = conn.Write([]byte("?")) // the response contains the source address
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			size, _ := conn.Read(buffer)
			return strings.TrimPrefix(string(buffer[:size]), "outside ")
		}, want)
	}
	wait(first)
	f.egress([]string{second, first}, []string{first, second})
	wait(second)
	f.egress([]string{second, first}, []string{first})
	wait(first)
	f.egress([]string{first}, nil)
	wait("")
	f.egress(nil, nil)
	wait(f.address["web"])
	eventually.True(t, "rules without table "+exitTable, func() bool { return !strings.Contains(hosttest.Run(t, "ip rule"), exitTable) })
}

// exitTable is the routing table for packets that leave the cluster through another host.
var exitTable = strconv.Itoa(egressip.Table)

// hasEvent reports whether an event in the default project contains the given text.
func (f *fixture) hasEvent(text string) bool {
	events, err := f.client.CoreV1().Events(metav1.NamespaceDefault).List(f.Context(), metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, text) })
}

func TestEgressAddressesThatCannotBeUsedAreReported(t *testing.T) {
	f := newFixture(t)
	f.newOutside()
	t.Cleanup(func() {
		if err := egressip.Release(); err != nil {
			t.Error(err)
		}
	})
	f.egress([]string{"192.0.2.9"}, []string{"192.0.2.9"})
	f.start()
	eventually.True(t, "event", func() bool {
		return f.hasEvent("egress IP 192.0.2.9 is not in the subnet 198.51.100.0/24 of the node")
	})
}
