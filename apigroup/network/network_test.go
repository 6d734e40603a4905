package network

import (
	"slices"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

func check(t *testing.T, name string, errs field.ErrorList, want ...string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Field)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %q", name, errs, want)
	}
}

func TestClusterNetworks(t *testing.T) {
	type network = *networkv1.ClusterNetwork
	for name, tt := range map[string]struct {
		change func(network)
		want   []string
	}{
		"plain":             {func(network) {}, nil},
		"no network":        {func(n network) { n.ClusterNetworks = nil }, []string{"clusterNetworks"}},
		"no service":        {func(n network) { n.ServiceNetwork = "" }, []string{"serviceNetwork"}},
		"host bits":         {func(n network) { n.ClusterNetworks[0].CIDR = "10.128.0.1/14" }, []string{"clusterNetworks[0].CIDR"}},
		"no CIDR":           {func(n network) { n.ServiceNetwork = "ten" }, []string{"serviceNetwork"}},
		"tiny subnets":      {func(n network) { n.ClusterNetworks[0].HostSubnetLength = 1 }, []string{"clusterNetworks[0].hostSubnetLength"}},
		"huge subnets":      {func(n network) { n.ClusterNetworks[0].HostSubnetLength = 19 }, []string{"clusterNetworks[0].hostSubnetLength"}},
		"over services":     {func(n network) { n.ServiceNetwork = "10.128.0.0/16" }, []string{"clusterNetworks[0].CIDR"}},
		"overlapping":       {func(n network) { n.ClusterNetworks = append(n.ClusterNetworks, n.ClusterNetworks[0]) }, []string{"clusterNetworks[1].CIDR"}},
		"port":              {func(n network) { n.VXLANPort = ptr.To[uint32](0) }, []string{"vxlanPort"}},
		"MTU":               {func(n network) { n.MTU = ptr.To[uint32](100) }, []string{"mtu"}},
		"old form":          {func(n network) { n.Network, n.HostSubnetLength, n.ClusterNetworks = "10.128.0.0/14", 9, nil }, nil},
		"conflicting forms": {func(n network) { n.Network, n.HostSubnetLength = "10.192.0.0/14", 9 }, []string{"clusterNetworks[0]"}},
	} {
		n := &networkv1.ClusterNetwork{ServiceNetwork: "172.30.0.0/16", ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostSubnetLength: 9}}}
		n.Name = "other"
		tt.change(n)
		check(t, name, validateClusterNetwork(n, networkv1.ClusterNetwork{}), tt.want...)
	}
}

func TestDefaultNetworkMatchesConfiguration(t *testing.T) {
	configured := &networkv1.ClusterNetwork{
		ServiceNetwork: "172.30.0.0/16", PluginName: networkplugin.Subnet,
		ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostSubnetLength: 9}},
	}
	configured.Name = networkv1.ClusterNetworkDefault
	check(t, "same", validateClusterNetwork(configured, *configured))
	changed := configured.DeepCopy()
	changed.ServiceNetwork = "172.31.0.0/16"
	check(t, "services", validateClusterNetwork(changed, *configured), "metadata.name")
	changed = configured.DeepCopy()
	changed.PluginName = networkplugin.Multitenant
	check(t, "plugin", validateClusterNetwork(changed, *configured), "metadata.name")
	changed = configured.DeepCopy()
	changed.MTU = ptr.To[uint32](1400)
	check(t, "MTU", validateClusterNetwork(changed, *configured))
}

func TestHostSubnets(t *testing.T) {
	type subnet = *networkv1.HostSubnet
	for name, tt := range map[string]struct {
		change func(subnet)
		want   []string
	}{
		"plain":      {func(subnet) {}, nil},
		"other name": {func(s subnet) { s.Host = "other" }, []string{"host"}},
		"no subnet":  {func(s subnet) { s.Subnet = "" }, []string{"subnet"}},
		"subnet not assigned yet": {func(s subnet) {
			s.Subnet, s.Annotations = "", map[string]string{networkv1.AssignHostSubnetAnnotation: "true"}
		}, nil},
		"no address": {func(s subnet) { s.HostIP = "node" }, []string{"hostIP"}},
		"egress": {func(s subnet) {
			s.EgressIPs, s.EgressCIDRs = []networkv1.HostSubnetEgressIP{"x"}, []networkv1.HostSubnetEgressCIDR{"y"}
		}, []string{"egressIPs[0]", "egressCIDRs[0]"}},
	} {
		s := &networkv1.HostSubnet{Host: "node", HostIP: "192.0.2.1", Subnet: "10.128.0.0/23"}
		s.Name = "node"
		tt.change(s)
		check(t, name, validateHostSubnet(t.Context(), s, nil), tt.want...)
	}
	old := &networkv1.HostSubnet{Host: "", HostIP: "192.0.2.1", Subnet: "10.128.0.0/23"}
	moved := old.DeepCopy()
	moved.Subnet = "10.128.2.0/23"
	check(t, "moved", validateHostSubnet(t.Context(), moved, old), "subnet")
}

func TestNetNamespaces(t *testing.T) {
	for id, want := range map[uint32][]string{0: nil, 9: {"netid"}, 10: nil, networkplugin.LastID: nil, networkplugin.LastID + 1: {"netid"}} {
		check(t, "identity", validateNetNamespace(&networkv1.NetNamespace{NetID: id}, nil, ""), want...)
	}
	check(t, "name", validateNetNamespace(&networkv1.NetNamespace{NetName: "other", EgressIPs: []networkv1.NetNamespaceEgressIP{"x"}}, nil, ""), "netname", "egressIPs[0]")
	check(t, "default", validateNetNamespace(namespace("default", 10, ""), nil, ""), "netid")
}

// namespace returns a NetNamespace whose annotation requests change. If change is empty, it has no
// annotation.
func namespace(name string, id uint32, change string) *networkv1.NetNamespace {
	n := &networkv1.NetNamespace{NetName: name, NetID: id}
	n.Name = name
	if change != "" {
		n.Annotations = map[string]string{networkv1.ChangePodNetworkAnnotation: change}
	}
	return n
}

func TestRequestsForChangesOfNetworks(t *testing.T) {
	const at = "metadata.annotations[pod.network.openshift.io/multitenant.change-network]"
	for _, tt := range []struct {
		project, change, plugin string
		want                    []string
	}{
		{"shop", "isolate", networkplugin.Multitenant, nil},
		{"shop", "join:bank", networkplugin.Multitenant, nil},
		{"default", "global", networkplugin.Multitenant, nil},
		{"shop", "split", networkplugin.Multitenant, []string{at}},
		{"default", "isolate", networkplugin.Multitenant, []string{at}},
		{"default", "join:shop", networkplugin.Multitenant, []string{at}},
		{"shop", "isolate", networkplugin.NetworkPolicy, []string{at}},
		{"shop", "isolate", networkplugin.Subnet, []string{at}},
	} {
		id := uint32(12)
		if tt.project == "default" {
			id = 0
		}
		request := namespace(tt.project, id, tt.change)
		check(t, tt.project+" "+tt.change+" "+tt.plugin, validateNetNamespace(request, nil, tt.plugin), tt.want...)
		check(t, "unchanged "+tt.change, validateNetNamespace(request, request, tt.plugin))
	}
}

func TestEgressNetworkPolicies(t *testing.T) {
	for name, tt := range map[string]struct {
		rule networkv1.EgressNetworkPolicyRule
		want []string
	}{
		"network":         {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{CIDRSelector: "1.2.3.0/24"}}, nil},
		"everything":      {networkv1.EgressNetworkPolicyRule{Type: "Deny", To: networkv1.EgressNetworkPolicyPeer{CIDRSelector: "0.0.0.0/0"}}, nil},
		"name":            {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "www.example.com"}}, nil},
		"other type":      {networkv1.EgressNetworkPolicyRule{Type: "allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "www.example.com"}}, []string{"spec.egress[0].type"}},
		"nowhere":         {networkv1.EgressNetworkPolicyRule{Type: "Allow"}, []string{"spec.egress[0].to"}},
		"both":            {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{CIDRSelector: "1.2.3.0/24", DNSName: "a"}}, []string{"spec.egress[0].to"}},
		"invalid network": {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{CIDRSelector: "1.2.3.4/24"}}, []string{"spec.egress[0].to.cidrSelector"}},
		"wildcard":        {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "*.example.com"}}, nil},
		"invalid name":    {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "a_b.example.com"}}, []string{"spec.egress[0].to.dnsName"}},
		"bare star":       {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "*"}}, []string{"spec.egress[0].to.dnsName"}},
		"inner star":      {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "a.*.example.com"}}, []string{"spec.egress[0].to.dnsName"}},
		"script":          {networkv1.EgressNetworkPolicyRule{Type: "Allow", To: networkv1.EgressNetworkPolicyPeer{DNSName: "a\"; flush ruleset; #"}}, []string{"spec.egress[0].to.dnsName"}},
	} {
		policy := &networkv1.EgressNetworkPolicy{Spec: networkv1.EgressNetworkPolicySpec{Egress: []networkv1.EgressNetworkPolicyRule{tt.rule}}}
		check(t, name, validateEgressNetworkPolicy(t.Context(), policy, nil), tt.want...)
	}
	for value, want := range map[string][]string{"allowed-names": nil, "none": {"metadata.annotations[slipway.openshift.io/resolve]"}} {
		policy := &networkv1.EgressNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkplugin.ResolveAnnotation: value}}}
		check(t, "resolve: "+value, validateEgressNetworkPolicy(t.Context(), policy, nil), want...)
	}
}

func TestListFormat(t *testing.T) {
	if got := list([]networkv1.HostSubnetEgressIP{"192.0.2.1", "192.0.2.2"}); got != `["192.0.2.1", "192.0.2.2"]` {
		t.Errorf("the table is %s", got)
	}
}
