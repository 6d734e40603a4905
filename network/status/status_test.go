package status

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkv1 "github.com/openshift/api/network/v1"
	networkfake "github.com/openshift/client-go/network/clientset/versioned/fake"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/policy"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// hostSubnet returns the HostSubnet of a host. uid is empty if the host is not a node.
func hostSubnet(name, address, subnet, uid string) *networkv1.HostSubnet {
	object := &networkv1.HostSubnet{ObjectMeta: named(name), Host: name, HostIP: address, Subnet: subnet}
	if uid != "" {
		object.Annotations = map[string]string{networkv1.NodeUIDAnnotation: uid}
	}
	return object
}

// TestReportDescribesNetworkOfHost connects a machine that has the pod network address of the host
// "second". The host "lost" does not respond, and the host "cut" has no route.
func TestReportDescribesNetworkOfHost(t *testing.T) {
	machine := hosttest.NewNamespace(t, "machine")
	machine.Connect(t, "192.0.2.1/24", "192.0.2.2/24")
	hosttest.Run(t, "ip netns exec machine ip address add 10.64.0.1/32 dev eth0")
	hosttest.Run(t, "ip route add 10.64.0.0/24 via 192.0.2.2")
	hosttest.Run(t, "ip route add 10.64.1.0/24 dev to-machine")
	hosttest.Run(t, "ip route add 10.64.3.0/24 dev to-machine")
	hosttest.Run(t, "nft add table ip test-status '{ map ingress-pods { type ipv4_addr : verdict; }; map egress-pods { type ipv4_addr : verdict; }; "+
		"map external-pods { type ipv4_addr : verdict; }; }'; nft add element ip test-status ingress-pods '{ 10.128.0.2 : drop, 10.128.0.3 : drop }'")
	t.Cleanup(func() { hosttest.Run(t, "nft delete table ip test-status") })

	port := uint32(4789)
	own := hostSubnet("one", "192.0.2.1", "10.128.0.0/23", "uid")
	own.EgressIPs = []networkv1.HostSubnetEgressIP{"192.0.2.77"}
	network := networkfake.NewClientset(
		&networkv1.ClusterNetwork{
			ObjectMeta: named("default"), PluginName: "redhat/openshift-ovs-multitenant", ServiceNetwork: "172.30.0.0/16", VXLANPort: &port,
			ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/23", HostSubnetLength: 9}, {CIDR: "10.64.0.0/16", HostSubnetLength: 8}},
		},
		own, hostSubnet("second", "192.0.2.2", "10.64.0.0/24", "uid"), hostSubnet("lost", "192.0.2.3", "10.64.1.0/24", "uid"),
		hostSubnet("cut", "192.0.2.4", "10.64.2.0/24", "uid"), hostSubnet("appliance", "192.0.2.5", "10.64.3.0/24", ""), hostSubnet("new", "192.0.2.6", "", "uid"),
		&networkv1.NetNamespace{ObjectMeta: named("default"), NetName: "default"},
		&networkv1.NetNamespace{ObjectMeta: named("shop"), NetName: "shop", NetID: 10, EgressIPs: []networkv1.NetNamespaceEgressIP{"192.0.2.77"}},
		&networkv1.NetNamespace{ObjectMeta: named("till"), NetName: "till", NetID: 10},
		&networkv1.EgressNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "shop"}},
	)
	leases := t.TempDir()
	if err := os.WriteFile(filepath.Join(leases, "10.128.0.2.json"), []byte(`{"namespace": "shop", "name": "web", "address": "10.128.0.2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	host := &Host{
		Node: "one", Client: fake.NewClientset(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny", Namespace: "shop"}}), Network: network,
		Transport: "auto", VXLANDevice: "vxlan_sys_4789", PolicyTable: "test-status", LeaseDir: leases,
		Networks: policy.Networks{Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/23")}},
	}
	report, err := host.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Plugin: "redhat/openshift-ovs-multitenant", Transport: "auto", VXLANPort: 4789, PodNetworks: []string{"10.128.0.0/23:9", "10.64.0.0/16:8"},
		ServiceNetwork: "172.30.0.0/16", Subnet: "10.128.0.0/23", Pods: 1, Projects: 3, NetworkIDs: 2, NetworkPolicies: 1, EgressFirewalls: 1,
		Restricted: policy.Restrictions{Ingress: 2}, EgressIPs: []EgressIP{{Address: "192.0.2.77", Projects: []string{"shop"}}},
		Peers: []Peer{
			{Name: "appliance", Address: "192.0.2.5", Subnet: "10.64.3.0/24", Path: "direct, to-machine"},
			{Name: "cut", Address: "192.0.2.4", Subnet: "10.64.2.0/24", Path: "none", Problem: "no route to its pods: network is unreachable"},
			{Name: "lost", Address: "192.0.2.3", Subnet: "10.64.1.0/24", Path: "direct, to-machine", Problem: "10.64.1.1 does not respond over the pod network"},
			{Name: "new", Address: "192.0.2.6", Path: "none", Problem: "the host has no subnet"},
			{Name: "second", Address: "192.0.2.2", Subnet: "10.64.0.0/24", Path: "direct, to-machine"},
		},
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if report.Healthy() {
		t.Error("a report with unreachable hosts is healthy")
	}
	if err := network.NetworkV1().ClusterNetworks().Delete(context.Background(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Read(t.Context()); err == nil {
		t.Error("reading the state without a ClusterNetwork succeeds")
	}
}
