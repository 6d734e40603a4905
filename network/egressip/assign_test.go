package egressip

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
)

func host(number int, addresses ...string) *networkv1.HostSubnet {
	name := fmt.Sprintf("host%d", number)
	h := &networkv1.HostSubnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Host: name, HostIP: fmt.Sprintf("192.0.2.%d", number)}
	for _, address := range addresses {
		h.EgressIPs = append(h.EgressIPs, networkv1.HostSubnetEgressIP(address))
	}
	return h
}

func project(name string, id uint32, addresses ...string) *networkv1.NetNamespace {
	p := &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}, NetName: name, NetID: id}
	for _, address := range addresses {
		p.EgressIPs = append(p.EgressIPs, networkv1.NetNamespaceEgressIP(address))
	}
	return p
}

func TestAssign(t *testing.T) {
	const one, two = "192.0.2.100", "192.0.2.101"
	both := []*networkv1.HostSubnet{host(1, one), host(2, two)}
	automatic := host(1)
	automatic.EgressCIDRs = []networkv1.HostSubnetEgressCIDR{"192.0.2.96/28", "2001:db8::/64"}
	const six, seven = "2001:db8::6", "2001:db8::7"
	dual := []*networkv1.HostSubnet{host(1, one, six), host(2, two, seven)}
	node := host(2, "2001:db8::2")
	node.Annotations = map[string]string{dualstack.HostAnnotation: "2001:db8::2"}
	for name, tt := range map[string]struct {
		hosts    []*networkv1.HostSubnet
		projects []*networkv1.NetNamespace
		lost     string
		want     string // paths of the project shop
		problem  string
	}{
		"no address":                       {both, []*networkv1.NetNamespace{project("shop", 10)}, "", "none", ""},
		"address of a host":                {both, []*networkv1.NetNamespace{project("shop", 10, two)}, "", two + " at host2", ""},
		"first of two":                     {both, []*networkv1.NetNamespace{project("shop", 10, two, one)}, "", two + " at host2", ""},
		"second if the first host is lost": {both, []*networkv1.NetNamespace{project("shop", 10, one, two)}, "host1", two + " at host2", ""},
		"first if all hosts are lost":      {both, []*networkv1.NetNamespace{project("shop", 10, one, two)}, "host1 host2", one + " at host1", ""},
		"only host is lost":                {both, []*networkv1.NetNamespace{project("shop", 10, one)}, "host1", one + " at host1", ""},
		"nowhere":                          {nil, []*networkv1.NetNamespace{project("shop", 10, one)}, "", "dropped", "no HostSubnet has egress IP " + one},
		"several automatic ones":           {[]*networkv1.HostSubnet{automatic}, []*networkv1.NetNamespace{project("shop", 10, one, two)}, "", "dropped", "only to a project with a single egress IP"},
		"one without a host":               {both[1:], []*networkv1.NetNamespace{project("shop", 10, one, two)}, "", two + " at host2", "no HostSubnet has egress IP " + one},
		"two hosts":                        {[]*networkv1.HostSubnet{host(1, one), host(2, one)}, []*networkv1.NetNamespace{project("shop", 10, one)}, "", "dropped", "several hosts (host1, host2)"},
		"two projects":                     {both, []*networkv1.NetNamespace{project("shop", 10, one), project("bank", 11, one)}, "", "dropped", "several projects (bank, shop)"},
		"address of a node":                {[]*networkv1.HostSubnet{host(1, "192.0.2.2"), host(2)}, []*networkv1.NetNamespace{project("shop", 10, "192.0.2.2")}, "", "dropped", `is the address of node "host2"`},
		"joined projects":                  {both, []*networkv1.NetNamespace{project("shop", 10, one), project("bank", 10)}, "", "dropped", "shares its network"},
		"IPv6 only":                        {dual, []*networkv1.NetNamespace{project("shop", 10, six)}, "", "none, " + six + " at host1", ""},
		"each family has its own host":     {dual, []*networkv1.NetNamespace{project("shop", 10, two, six)}, "", two + " at host2, " + six + " at host1", ""},
		"the next one in each family":      {dual, []*networkv1.NetNamespace{project("shop", 10, one, six, seven, two)}, "host1", two + " at host2, " + seven + " at host2", ""},
		"one automatic in each family":     {[]*networkv1.HostSubnet{automatic}, []*networkv1.NetNamespace{project("shop", 10, one, six)}, "", "dropped", "no HostSubnet has egress IP " + six},
		"no host for IPv6":                 {both, []*networkv1.NetNamespace{project("shop", 10, one, six)}, "", one + " at host1", "all external IPv6 traffic of project \"shop\" is dropped"},
		"no host for IPv4":                 {dual, []*networkv1.NetNamespace{project("shop", 10, "192.0.2.103", six)}, "", "none, " + six + " at host1", "all external IPv4 traffic"},
		"other form of an address":         {dual, []*networkv1.NetNamespace{project("shop", 10, "2001:DB8:0::6")}, "", "none, " + six + " at host1", ""},
		"IPv6 address of a node":           {[]*networkv1.HostSubnet{node}, []*networkv1.NetNamespace{project("shop", 10, "2001:db8::2")}, "", "dropped", `is the address of node "host2"`},
		"link-local address":               {[]*networkv1.HostSubnet{host(1, "fe80::6")}, []*networkv1.NetNamespace{project("shop", 10, "fe80::6")}, "", "dropped", "all external traffic"},
		"global project":                   {both, []*networkv1.NetNamespace{project("shop", 0, one)}, "", "dropped", "shares its network"},
	} {
		t.Run(name, func(t *testing.T) {
			exit, exists := Assign(tt.hosts, tt.projects, func(host string) bool { return !strings.Contains(tt.lost, host) })["shop"]
			got := "none"
			if exists {
				got = paths(exit)
			}
			if got != tt.want || !strings.Contains(exit.Problem, tt.problem) || tt.problem == "" && exit.Problem != "" {
				t.Errorf("got %s, %q, want %s, %q", got, exit.Problem, tt.want, tt.problem)
			}
		})
	}
}

// paths describes a project's paths. It omits a missing IPv6 path.
func paths(exit Exit) string {
	var texts []string
	for _, path := range exit.Paths {
		if path.Address.IsValid() {
			texts = append(texts, fmt.Sprintf("%s at %s", path.Address, path.Host))
		} else {
			texts = append(texts, "none")
		}
	}
	return cmp.Or(strings.TrimSuffix(strings.TrimSuffix(strings.Join(texts, ", "), ", none"), "none"), "dropped")
}

func TestMarksAreUniqueAndAvoidBitOfKubeProxy(t *testing.T) {
	seen := map[uint32]uint32{}
	for vni := range uint32(1 << 16) {
		mark := Mark(vni)
		if other, exists := seen[mark]; exists || mark&0x4000 != 0 || mark&MarkMask != MarkLocal {
			t.Fatalf("network ID %d has mark %#x, like %d", vni, mark, other)
		}
		seen[mark] = vni
	}
	if Mark(1<<24-1)&MarkMask != MarkLocal {
		t.Errorf("mark of the last network ID: %#x", Mark(1<<24-1))
	}
}

func TestMonitorReportsLossAndReturn(t *testing.T) {
	m := &Monitor{}
	m.Watch(hosts("lost"))
	for i := range maxFailures {
		if changed := m.record(map[string]bool{"lost": false}); changed != (i == maxFailures-1) {
			t.Errorf("after %d failures: change %t", i+1, changed)
		}
	}
	if m.Alive("lost") || !m.Alive("other") {
		t.Error("the lost host counts as alive, or a host that is not polled counts as lost")
	}
	if !m.record(map[string]bool{"lost": true}) || !m.Alive("lost") {
		t.Error("the host that responds again counts as lost")
	}
}

func TestHostThatRejectsConnectionsIsAlive(t *testing.T) {
	results := poll(t.Context(), hosts("here"))
	if !results["here"] {
		t.Errorf("results %v", results)
	}
}

// hosts returns hosts that all have the address of this machine.
func hosts(names ...string) map[string]netip.Addr {
	all := map[string]netip.Addr{}
	for _, name := range names {
		all[name] = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return all
}
