package agent

import (
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	corev1 "k8s.io/api/core/v1"
)

// FuzzPeer verifies that a host gets routes and VXLAN peers only for subnets in the pod network.
// Another host's HostSubnet or Node can have any content.
func FuzzPeer(f *testing.F) {
	f.Add("10.129.0.0/23", "192.0.2.2", "10")
	f.Add("10.128.0.0/14", "10.128.0.1", "16777216")
	f.Add("0.0.0.0/0", "0.0.0.0", "-1")
	f.Add("::ffff:10.129.0.0/119", "::ffff:192.0.2.2", "")
	f.Fuzz(func(t *testing.T, subnet, address, vni string) {
		a := &Agent{NodeName: "one", DualStack: testNetworks}
		host := &networkv1.HostSubnet{Subnet: subnet, HostIP: address}
		host.Annotations = map[string]string{networkv1.FixedVNIDHostAnnotation: vni}
		node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: subnet, PodCIDRs: []string{subnet}}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		for _, p := range []peer{a.externalPeerOf(host), a.peerOf(node)} {
			if !p.subnet.IsValid() {
				continue
			}
			if !a.isPart(p.subnet) || p.subnet != p.subnet.Masked() || !p.Address.Is4() || p.subnet.Contains(p.Address) || p.VNI >= 1<<24 {
				t.Errorf("subnet %q, address %q, VNI %q: %+v", subnet, address, vni, p)
			}
			if p.second.IsValid() && !testNetworks.IPv6.Overlaps(p.second) {
				t.Errorf("subnet %q: the IPv6 subnet is %s", subnet, p.second)
			}
		}
	})
}
