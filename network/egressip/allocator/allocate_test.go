package allocator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// subnet returns the HostSubnet described by a string such as "a 192.0.2.0/24 192.0.2.101", which
// contains its name, range and addresses. The range is "-" for a host whose addresses an
// administrator assigns, and "was" for a host that had a range before.
func subnet(text string) *networkv1.HostSubnet {
	fields := strings.Fields(text)
	number := fields[0][0] - 'a' + 1
	s := &networkv1.HostSubnet{
		ObjectMeta: metav1.ObjectMeta{Name: fields[0]}, Host: fields[0],
		HostIP: fmt.Sprintf("192.0.2.%d", number), Subnet: fmt.Sprintf("10.1.%d.0/24", number),
	}
	switch fields[1] {
	case "-":
	case "was":
		s.Annotations = map[string]string{automaticAnnotation: "true"}
	default:
		s.EgressCIDRs = []networkv1.HostSubnetEgressCIDR{networkv1.HostSubnetEgressCIDR(fields[1])}
		s.Annotations = map[string]string{automaticAnnotation: "true"}
	}
	for _, address := range fields[2:] {
		s.EgressIPs = append(s.EgressIPs, networkv1.HostSubnetEgressIP(address))
	}
	return s
}

// project returns a NetNamespace whose egress IPs are given as a comma-separated list.
func project(name, addresses string) *networkv1.NetNamespace {
	n := &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: name}, NetName: name}
	for address := range strings.SplitSeq(addresses, ",") {
		n.EgressIPs = append(n.EgressIPs, networkv1.NetNamespaceEgressIP(address))
	}
	return n
}

func TestAllocate(t *testing.T) {
	const all = " 192.0.2.0/24"
	for name, tt := range map[string]struct {
		hosts    []string
		projects []string
		lost     string
		want     string
	}{
		"balanced":           {[]string{"a" + all, "b" + all}, []string{"192.0.2.100", "192.0.2.101", "192.0.2.102"}, "", "a=100,102 b=101"},
		"kept":               {[]string{"a" + all, "b" + all + " 192.0.2.100"}, []string{"192.0.2.100"}, "", "a= b=100"},
		"released":           {[]string{"a" + all + " 192.0.2.100 192.0.2.101"}, []string{"192.0.2.101"}, "", "a=101"},
		"outside ranges":     {[]string{"a" + all}, []string{"198.51.100.1"}, "", "a="},
		"only one host fits": {[]string{"a 192.0.2.100/32", "b 192.0.2.101/32"}, []string{"192.0.2.100", "192.0.2.101"}, "", "a=100 b=101"},
		"range of a host has changed": {
			[]string{"a 192.0.2.128/25 192.0.2.100", "b" + all}, []string{"192.0.2.100"}, "", "a= b=100",
		},
		"lost host": {[]string{"a" + all + " 192.0.2.100", "b" + all + " 192.0.2.101"}, []string{"192.0.2.100", "192.0.2.101"}, "a", "a= b=100,101"},
		"returned host": {
			[]string{"a" + all, "b" + all + " 192.0.2.100 192.0.2.101"}, []string{"192.0.2.100", "192.0.2.101"}, "", "a=101 b=100",
		},
		"no other host":      {[]string{"a 192.0.2.100/32 192.0.2.100", "b 192.0.2.101/32"}, []string{"192.0.2.100"}, "a", "a=100 b="},
		"all hosts are lost": {[]string{"a" + all + " 192.0.2.100", "b" + all}, []string{"192.0.2.100", "192.0.2.101"}, "ab", "a=100 b=101"},
		"one address in each family": {
			[]string{"a" + all, "b 2001:db8::/64"}, []string{"192.0.2.100,2001:db8::65"}, "", "a=100 b=101",
		},
		"IPv6 on a lost host": {
			[]string{"a 2001:db8::/64 2001:db8::64", "b 2001:db8::/64"}, []string{"2001:db8::64", "2001:db8::65,2001:db8::66"}, "a", "a= b=100",
		},
		"two addresses":                {[]string{"a" + all}, []string{"192.0.2.100,192.0.2.101"}, "", "a="},
		"address of a node":            {[]string{"a" + all, "b -"}, []string{"192.0.2.2"}, "", "a="},
		"assigned by an administrator": {[]string{"a" + all + " 192.0.2.100", "b - 192.0.2.100"}, []string{"192.0.2.100"}, "", "a="},
		"former automatic host":        {[]string{"a" + all, "b was 192.0.2.100"}, []string{"192.0.2.100"}, "", "a=100"},
		"address of two hosts":         {[]string{"a" + all + " 192.0.2.100", "b" + all + " 192.0.2.100"}, []string{"192.0.2.100"}, "", "a=100 b="},
	} {
		t.Run(name, func(t *testing.T) {
			var hosts []*networkv1.HostSubnet
			for _, text := range tt.hosts {
				hosts = append(hosts, subnet(text))
			}
			var projects []*networkv1.NetNamespace
			for i, addresses := range tt.projects {
				projects = append(projects, project(fmt.Sprint("project", i), addresses))
			}
			var texts []string
			for name, addresses := range allocate(hosts, projects, func(host string) bool { return !strings.Contains(tt.lost, host) }) {
				var last []string
				for _, address := range addresses {
					last = append(last, fmt.Sprint(address.As16()[15]))
				}
				texts = append(texts, name+"="+strings.Join(last, ","))
			}
			slices.Sort(texts)
			if got := strings.Join(texts, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
