package network

import (
	"context"
	"strconv"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
)

func TestRejectionNamesHostsWhoseSubnetsWouldChange(t *testing.T) {
	const first, second, ipv6 = "10.128.0.0/23:9", "10.64.0.0/16:8", "fd01::/48:64"
	for name, tt := range map[string]struct {
		current, configured string
		want                string
	}{
		"unchanged":         {first + " " + second, first + " " + second, ""},
		"added":             {first + " " + second, first + " " + second + " 10.66.0.0/16:8", ""},
		"enlarged":          {first + " " + second, first + " 10.64.0.0/15:8", ""},
		"other subnets":     {first + " " + second, first + " 10.64.0.0/16:7", ""},
		"unused is removed": {first + " " + second + " 10.66.0.0/16:8", first + " " + second, ""},
		"removed":           {first + " " + second, first, `no network contains the subnet 10.64.0.0/24 of host "two"`},
		"reduced":           {first + " " + second, first + " 10.64.128.0/17:8", `no network contains the subnet 10.64.0.0/24 of host "two"`},
		"reordered":         {first + " " + second, second + " " + first, ""},
		"IPv6 is added":     {first + " " + second, first + " " + second + " " + ipv6, ""},
		"IPv6 is reordered": {first + " " + second + " " + ipv6, second + " " + first + " " + ipv6, `the IPv6 subnet of host "one" would change from fd01::/64 to fd01:0:0:100::/64`},
		"IPv6 is changed":   {first + " " + second + " " + ipv6, first + " " + second + " fd11::/48:64", `the IPv6 subnet of host "two" would change from fd01:0:0:1::/64 to fd11:0:0:1::/64`},
		"before a network":  {first + " " + second + " " + ipv6, first + " 10.66.0.0/16:8 " + second + " " + ipv6, `the IPv6 subnet of host "two" would change`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Controllers{DualStack: networksOf(clusterNetwork(t, tt.configured))}
			got := c.rejection(clusterNetwork(t, tt.current), []*networkv1.HostSubnet{
				{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Subnet: "10.128.0.0/23"}, {ObjectMeta: metav1.ObjectMeta{Name: "two"}, Subnet: "10.64.0.0/24"},
				{ObjectMeta: metav1.ObjectMeta{Name: "ghost"}},
			})
			if !strings.Contains(got, tt.want) || got != "" && tt.want == "" {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// clusterNetwork returns a ClusterNetwork with networks such as "10.128.0.0/14:9 fd01::/48:64".
func clusterNetwork(t *testing.T, text string) *networkv1.ClusterNetwork {
	t.Helper()
	network := &networkv1.ClusterNetwork{PluginName: networkplugin.NetworkPolicy}
	for entry := range strings.FieldsSeq(text) {
		at := strings.LastIndex(entry, ":")
		bits, err := strconv.Atoi(entry[at+1:])
		if err != nil {
			t.Fatal(err)
		}
		network.ClusterNetworks = append(network.ClusterNetworks, networkv1.ClusterNetworkEntry{CIDR: entry[:at], HostSubnetLength: uint32(bits)})
	}
	return network
}

// TestNetworksInUseStayInForce removes the network of a host from the configuration, and then
// removes the host.
func TestNetworksInUseStayInForce(t *testing.T) {
	c := newCluster(t, networkplugin.NetworkPolicy)
	run := func(name, networks string, test func(c *cluster, note func() string)) {
		c.Run(name, func(t *testing.T) {
			deps := &controller.Deps{Kube: c.kube}
			deps.Init()
			componenttest.Run(t, deps.Run)
			network := clusterNetwork(t, networks)
			notes := make(chan string, 100)
			component := &Controllers{Deps: deps, Client: c.network, Network: *network, DualStack: networksOf(network)}
			component.Notes(func(text string) { notes <- text })
			componenttest.Run(t, component.Run)
			last := ""
			test(&cluster{t, c.kube, c.network, c.plugin}, func() string {
				for len(notes) > 0 {
					last = <-notes
				}
				return last
			})
		})
	}
	inForce := func(networks string) func() bool {
		return func() bool {
			done, err := InForce(context.Background(), c.network, *clusterNetwork(t, networks))
			return err == nil && done
		}
	}
	const before, after = "10.128.0.0/23:9 10.64.0.0/16:8", "10.128.0.0/23:9 10.66.0.0/16:8"
	run("two networks", before, func(c *cluster, _ func() string) {
		c.node("one", "192.0.2.1", "")
		c.subnets("one 192.0.2.1 10.128.0.0/23")
		c.node("two", "192.0.2.2", "")
		c.subnets("one 192.0.2.1 10.128.0.0/23", "two 192.0.2.2 10.64.0.0/24")
		eventually.True(c, "networks", inForce(before))
	})
	run("without the network of a host", after, func(c *cluster, note func() string) {
		eventually.True(c, "note", func() bool {
			return strings.Contains(note(), `no network contains the subnet 10.64.0.0/24 of host "two"`)
		})
		if !inForce(before)() || inForce(after)() {
			c.Error("the configured networks are in force")
		}
		c.node("three", "192.0.2.3", "") // gets no subnet from a network that is not in force
		c.must(c.kube.CoreV1().Nodes().Delete(c.Context(), "two", metav1.DeleteOptions{}))
		eventually.True(c, "networks", inForce(after))
		eventually.Equal(c, "note", note, "")
		c.subnets("one 192.0.2.1 10.128.0.0/23", "three 192.0.2.3 10.66.0.0/24")
	})
}

func TestSubnetsAreAllocatedOnlyFromNetworksInForce(t *testing.T) {
	component := &Controllers{}
	hosts := &hostSubnets{rejected: component.rejected}
	for _, want := range []string{"not been compared", "no network contains"} {
		if _, err := hosts.allocate(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
		component.report("no network contains the subnet")
	}
}
