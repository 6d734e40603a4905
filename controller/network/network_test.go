package network

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	networkfake "github.com/openshift/client-go/network/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// cluster is a cluster that contains the default project. It runs the component until stop is
// called.
type cluster struct {
	*testing.T
	kube    *fake.Clientset
	network *networkfake.Clientset
	plugin  string
}

func newCluster(t *testing.T, plugin string) *cluster {
	t.Helper()
	c := &cluster{t, fake.NewClientset(), networkfake.NewClientset(), plugin}
	// The fake client sends no bookmark after a watch's initial objects, so reflectors must list.
	c.network.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if action.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewBadRequest("no initial events")
		}
		return false, nil, nil
	})
	c.project("default")
	return c
}

// run runs the component in a subtest and stops it at the end of the subtest.
func (c *cluster) run(name string, test func(c *cluster)) {
	c.Helper()
	c.Run(name, func(t *testing.T) {
		deps := &controller.Deps{Kube: c.kube}
		deps.Init()
		componenttest.Run(t, deps.Run)
		componenttest.Run(t, (&Controllers{Deps: deps, Client: c.network, Network: networkv1.ClusterNetwork{
			ServiceNetwork: "172.30.0.0/16", PluginName: c.plugin,
			ClusterNetworks: []networkv1.ClusterNetworkEntry{{CIDR: "10.128.0.0/14", HostSubnetLength: 9}},
		}, DualStack: dualstack.Networks{IPv4: []dualstack.Network{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), HostBits: 9}}}}).Run)
		test(&cluster{t, c.kube, c.network, c.plugin})
	})
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) project(names ...string) {
	c.Helper()
	for _, name := range names {
		_, err := c.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		c.must(err)
	}
}

func (c *cluster) projectWithUID(name, uid string) {
	c.Helper()
	_, err := c.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}, metav1.CreateOptions{})
	c.must(err)
}

func (c *cluster) deleteProject(name string) {
	c.Helper()
	c.must(c.kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}))
}

// ids waits until the projects have the given network IDs, such as "default=0 shop=10".
func (c *cluster) ids(want string) {
	c.Helper()
	eventually.Equal(c, "network IDs", func() string {
		list, err := c.network.NetworkV1().NetNamespaces().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var texts []string
		for _, n := range list.Items {
			text := fmt.Sprintf("%s=%d", n.NetName, n.NetID)
			if change := n.Annotations[networkv1.ChangePodNetworkAnnotation]; change != "" {
				text += "(" + change + ")"
			}
			texts = append(texts, text)
		}
		slices.Sort(texts)
		return strings.Join(texts, " ")
	}, want)
}

// request requests a change to a project's network.
func (c *cluster) request(project, change string) {
	c.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, networkv1.ChangePodNetworkAnnotation, change)
	_, err := c.network.NetworkV1().NetNamespaces().Patch(context.Background(), project, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
}

func TestProjectsGetNetworkIDs(t *testing.T) {
	c := newCluster(t, networkplugin.Multitenant)
	c.run("new projects", func(c *cluster) {
		c.ids("default=0")
		c.project("a")
		c.ids("a=10 default=0")
		c.project("b")
		c.ids("a=10 b=11 default=0")
		c.project("c")
		c.ids("a=10 b=11 c=12 default=0")
	})
	c.run("joined", func(c *cluster) {
		c.request("b", "join:a")
		c.ids("a=10 b=10 c=12 default=0")
		c.deleteProject("a")
		c.ids("b=10 c=12 default=0")
		c.project("d") // ID 10 is in use, and ID 11 is free
		c.ids("b=10 c=12 d=11 default=0")
		c.request("c", "global:")
		c.ids("b=10 c=0 d=11 default=0")
		c.request("b", "isolate") // project b is already isolated
		c.ids("b=10 c=0 d=11 default=0")
		c.request("c", "isolate")
		c.ids("b=10 c=12 d=11 default=0")
	})
	// Projects are created and deleted while no control plane is running.
	c.deleteProject("b")
	c.deleteProject("d")
	c.project("e")
	c.request("c", "join:default")
	c.run("after a restart", func(c *cluster) {
		// Wait until the controller has processed these changes, in any order.
		eventually.True(c, "network IDs", func() bool {
			list, err := c.network.NetworkV1().NetNamespaces().List(context.Background(), metav1.ListOptions{})
			return err == nil && len(list.Items) == 3
		})
		c.deleteProject("e")
		c.ids("c=0 default=0")
		c.project("f")
		c.ids("c=0 default=0 f=10")
	})
}

func TestNewProjectDoesNotInheritNetworkOfDeletedProject(t *testing.T) {
	c := newCluster(t, networkplugin.Multitenant)
	c.projectWithUID("shared", "first")
	c.run("first project", func(c *cluster) {
		c.ids("default=0 shared=10")
		c.request("shared", "global")
		c.ids("default=0 shared=0")
	})
	// The controller observes both changes at the same time, as it does when no master is the
	// leader or the queue is long.
	c.deleteProject("shared")
	c.projectWithUID("shared", "second")
	c.run("second project", func(c *cluster) { c.ids("default=0 shared=10") })
}

func TestNetNamespaceOfFutureProjectKeepsID(t *testing.T) {
	c := newCluster(t, networkplugin.Multitenant)
	c.must(c.network.Tracker().Add(&networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}, NetName: "a", NetID: 77}))
	c.projectWithUID("a", "first")
	c.run("", func(c *cluster) {
		eventually.Equal(c, "project of the NetNamespace", func() string {
			namespace, err := c.network.NetworkV1().NetNamespaces().Get(context.Background(), "a", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(namespace.NetID, " ", namespace.Annotations[networkplugin.ProjectUIDAnnotation])
		}, "77 first")
	})
}

func TestJoinWaitsForOtherProject(t *testing.T) {
	newCluster(t, networkplugin.Multitenant).run("", func(c *cluster) {
		c.project("a")
		c.ids("a=10 default=0")
		c.request("a", "join:b")
		c.project("b")
		c.ids("a=11 b=11 default=0")
	})
}

func TestOtherPluginsChangeNoNetworks(t *testing.T) {
	newCluster(t, networkplugin.NetworkPolicy).run("", func(c *cluster) {
		c.project("a")
		c.ids("a=10 default=0")
		c.request("a", "global")
		c.project("b")
		c.ids("a=10(global) b=11 default=0")
	})
}

func TestDefaultNetworkFollowsConfiguration(t *testing.T) {
	c := newCluster(t, networkplugin.Multitenant)
	networks := c.network.NetworkV1().ClusterNetworks()
	plugin := func() string {
		network, err := networks.Get(context.Background(), networkv1.ClusterNetworkDefault, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return network.PluginName + " " + network.ServiceNetwork + fmt.Sprint(network.ClusterNetworks)
	}
	const rest = " 172.30.0.0/16[{10.128.0.0/14 9}]"
	c.run("created", func(c *cluster) {
		eventually.Equal(c, "network", plugin, networkplugin.Multitenant+rest)
		c.must(networks.Delete(c.Context(), networkv1.ClusterNetworkDefault, metav1.DeleteOptions{}))
		eventually.Equal(c, "network", plugin, networkplugin.Multitenant+rest)
	})
	c.plugin = networkplugin.Subnet
	c.run("changed", func(c *cluster) { eventually.Equal(c, "network", plugin, networkplugin.Subnet+rest) })
}

// hostIPv6 is the IPv6 address of all nodes.
const hostIPv6 = "2001:db8::1"

// node creates a node with an IPv4 address and a subnet.
func (c *cluster) node(name, address, subnet string) {
	c.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.NodeSpec{PodCIDR: subnet}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeInternalIP, Address: hostIPv6}}
	_, err := c.kube.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	c.must(err)
}

// subnets waits until the HostSubnets match want, such as "one 192.0.2.1 10.128.0.0/23", and checks
// that the nodes have the same subnets.
func (c *cluster) subnets(want ...string) {
	c.Helper()
	eventually.Equal(c, "subnets", func() string {
		list, err := c.network.NetworkV1().HostSubnets().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var texts []string
		for _, s := range list.Items {
			texts = append(texts, s.Host+" "+s.HostIP+" "+s.Subnet)
			node, err := c.kube.CoreV1().Nodes().Get(context.Background(), s.Host, metav1.GetOptions{})
			if err == nil && node.Spec.PodCIDR != s.Subnet {
				texts = append(texts, "the node has "+node.Spec.PodCIDR)
			}
			if address := s.Annotations[dualstack.HostAnnotation]; err == nil && address != hostIPv6 {
				texts = append(texts, "IPv6 address "+address)
			}
		}
		slices.Sort(texts)
		return strings.Join(texts, ", ")
	}, strings.Join(want, ", "))
}

func TestNodesGetSubnets(t *testing.T) {
	c := newCluster(t, networkplugin.NetworkPolicy)
	c.node("old", "192.0.2.1", "10.128.2.0/23") // an earlier version has assigned this subnet
	c.run("nodes", func(c *cluster) {
		c.node("two", "192.0.2.2", "")
		c.subnets("old 192.0.2.1 10.128.2.0/23", "two 192.0.2.2 10.128.0.0/23")
		c.node("three", "192.0.2.3", "")
		c.subnets("old 192.0.2.1 10.128.2.0/23", "three 192.0.2.3 10.129.0.0/23", "two 192.0.2.2 10.128.0.0/23")
		c.must(c.kube.CoreV1().Nodes().Delete(c.Context(), "two", metav1.DeleteOptions{}))
		c.subnets("old 192.0.2.1 10.128.2.0/23", "three 192.0.2.3 10.129.0.0/23")
		// This HostSubnet is for a host that is not a node.
		ghost := &networkv1.HostSubnet{ObjectMeta: metav1.ObjectMeta{Name: "f5", Annotations: map[string]string{
			networkv1.AssignHostSubnetAnnotation: "true", networkv1.FixedVNIDHostAnnotation: "0",
		}}, Host: "f5", HostIP: "192.0.2.9"}
		_, err := c.network.NetworkV1().HostSubnets().Create(c.Context(), ghost, metav1.CreateOptions{})
		c.must(err)
		c.subnets("f5 192.0.2.9 10.128.0.0/23", "old 192.0.2.1 10.128.2.0/23", "three 192.0.2.3 10.129.0.0/23")
		c.node("four", "192.0.2.4", "")
		c.subnets("f5 192.0.2.9 10.128.0.0/23", "four 192.0.2.4 10.130.0.0/23", "old 192.0.2.1 10.128.2.0/23", "three 192.0.2.3 10.129.0.0/23")
	})
	// While no control plane is running, a node is removed and another node gets its address.
	c.must(c.kube.CoreV1().Nodes().Delete(t.Context(), "three", metav1.DeleteOptions{}))
	c.node("five", "192.0.2.3", "")
	c.run("after a restart", func(c *cluster) {
		c.subnets("f5 192.0.2.9 10.128.0.0/23", "five 192.0.2.3 10.129.0.0/23", "four 192.0.2.4 10.130.0.0/23", "old 192.0.2.1 10.128.2.0/23")
	})
}

func TestOrderOfSubnets(t *testing.T) {
	for _, tt := range []struct {
		cidr     string
		hostBits int
		want     map[int]string // subnets by number
	}{
		// This is the example in the guide.
		{"10.1.0.0/16", 6, map[int]string{0: "10.1.0.0/26", 1: "10.1.1.0/26", 255: "10.1.255.0/26", 256: "10.1.0.64/26", 257: "10.1.1.64/26", 1023: "10.1.255.192/26"}},
		{"10.128.0.0/14", 9, map[int]string{0: "10.128.0.0/23", 1: "10.129.0.0/23", 3: "10.131.0.0/23", 4: "10.128.2.0/23", 511: "10.131.254.0/23"}},
		{"10.1.0.0/16", 8, map[int]string{0: "10.1.0.0/24", 1: "10.1.1.0/24", 255: "10.1.255.0/24"}},
		// The subnet numbers are within one octet.
		{"10.1.2.0/24", 6, map[int]string{0: "10.1.2.0/26", 1: "10.1.2.64/26", 3: "10.1.2.192/26"}},
	} {
		network := dualstack.Network{Prefix: netip.MustParsePrefix(tt.cidr), HostBits: tt.hostBits}
		all, distinct := slices.Collect(subnets(network)), map[netip.Prefix]bool{}
		for _, subnet := range all {
			distinct[subnet] = network.Contains(subnet.Addr())
		}
		if want := 1 << (32 - network.Bits() - tt.hostBits); len(all) != want || len(distinct) != want {
			t.Errorf("%s with %d bits has %d subnets, %d distinct, want %d", tt.cidr, tt.hostBits, len(all), len(distinct), want)
		}
		for number, want := range tt.want {
			if got := all[number].String(); got != want {
				t.Errorf("%s with %d bits: subnet %d is %s, want %s", tt.cidr, tt.hostBits, number, got, want)
			}
		}
	}
}

func TestSubnetsComeFromFirstNetworkWithFreeSubnet(t *testing.T) {
	networks := []dualstack.Network{
		{Prefix: netip.MustParsePrefix("10.1.2.0/24"), HostBits: 7}, {Prefix: netip.MustParsePrefix("10.64.0.0/24"), HostBits: 6},
	}
	for _, tt := range []struct {
		used []string
		want string
	}{
		{nil, "10.1.2.0/25"},
		{[]string{"", "10.1.2.0/28"}, "10.1.2.128/25"}, // a network of a different size overlaps
		{[]string{"10.1.2.0/25", "10.1.2.192/28"}, "10.64.0.0/26"},
		{[]string{"10.1.2.0/25", "10.1.2.128/25", "10.64.0.0/26", "fd01::/64"}, "10.64.0.64/26"},
		{[]string{"10.1.2.128/25", "10.64.0.0/26"}, "10.1.2.0/25"}, // a deleted node's subnet
	} {
		if subnet, err := free(networks, tt.used); err != nil || subnet.String() != tt.want {
			t.Errorf("%q in use: %s, %v, want %s", tt.used, subnet, err, tt.want)
		}
	}
	subnet, err := free(networks, []string{"10.1.2.0/24", "10.64.0.0/24"})
	if err == nil || !strings.Contains(err.Error(), "10.1.2.0/24 with 7 host bits and of 10.64.0.0/24 with 6 host bits are in use; remove nodes") {
		t.Errorf("subnet %s, %v, want an error", subnet, err)
	}
}
