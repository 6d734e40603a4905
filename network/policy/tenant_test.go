package policy

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/google/go-cmp/cmp"
	networkv1 "github.com/openshift/api/network/v1"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/ipfamily"
)

func TestCompileNetworks(t *testing.T) {
	const shopPods, bankPods = "[10.128.0.2, 10.128.0.3, 10.129.0.2]", "[10.128.0.4]"
	for _, tt := range []struct {
		name    string
		plugin  string
		netIDs  map[string]uint32
		address string
		want    string
	}{
		{"isolated", networkplugin.Multitenant, map[string]uint32{"shop": 12, "bank": 13}, "10.128.0.2",
			"ip daddr " + shopPods + " accept\nip daddr [] accept\ngoto network-others"},
		{"joined", networkplugin.Multitenant, map[string]uint32{"shop": 12, "bank": 12}, "10.128.0.4",
			"ip daddr [10.128.0.2, 10.128.0.3, 10.128.0.4, 10.129.0.2] accept\nip daddr [] accept\ngoto network-others"},
		{"beside a global project", networkplugin.Multitenant, map[string]uint32{"shop": 12, "bank": 0}, "10.128.0.2",
			"ip daddr " + shopPods + " accept\nip daddr " + bankPods + " accept\ngoto network-others"},
		{"global", networkplugin.Multitenant, map[string]uint32{"shop": 0, "bank": 13}, "10.128.0.2", "accept"},
		{"without a network", networkplugin.Multitenant, map[string]uint32{"bank": 13}, "10.128.0.2", "not isolated"},
		{"pod of another node", networkplugin.Multitenant, map[string]uint32{"shop": 12}, "10.129.0.2", "not isolated"},
		{"another plugin", networkplugin.NetworkPolicy, map[string]uint32{"shop": 12, "bank": 13}, "10.128.0.2", "not isolated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shop()
			s.plugin, s.netIDs = tt.plugin, tt.netIDs
			rules := compile(s)
			if got := rules.networkText(source, tt.address); got != tt.want {
				t.Errorf("rules of a source:\n%s\nwant\n%s", got, tt.want)
			}
			want := strings.ReplaceAll(tt.want, "daddr", "saddr")
			if got := rules.networkText(target, tt.address); got != want {
				t.Errorf("rules of a target:\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// networkText returns the multitenant rules for a pod's packets, with set names replaced by the
// sets' content.
func (r *ruleset) networkText(d direction, address string) string {
	name, isolated := r.pods[d][netip.MustParseAddr(address)]
	if !isolated {
		return "not isolated"
	}
	var lines []string
	for _, rule := range r.chains[name].rules {
		for name, set := range r.sets {
			rule = strings.ReplaceAll(rule, "@"+name+" ", "["+strings.Join(sortedKeys(set.elements), ", ")+"] ")
		}
		lines = append(lines, rule)
	}
	return strings.Join(lines, "\n")
}

func TestRulesOfAPacketDoNotGrowWithProjects(t *testing.T) {
	s := shop()
	s.plugin, s.netIDs = networkplugin.Multitenant, map[string]uint32{"shop": 12, "bank": 13}
	before := compile(s)
	for i := range 1000 {
		project := "project-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		s.netIDs[project] = uint32(20 + i)
		s.pods = append(s.pods, pod{namespace: project, address: netip.AddrFrom4([4]byte{10, 130, byte(i >> 8), byte(i)})})
	}
	after := compile(s)
	if diff := cmp.Diff(before.chains, after.chains, cmp.AllowUnexported(chain{})); diff != "" {
		t.Errorf("pods of other nodes and projects change the rules (-before +after):\n%s", diff)
	}
}

func TestHostsAreInAllNetworks(t *testing.T) {
	f := newFixture(t)
	objects := newObjects(f.client, f.network)
	objects.podNetworks = f.enforcer.Networks.Pods
	for name, host := range map[string]networkv1.HostSubnet{
		"one": {Subnet: "10.128.0.0/23", HostIP: "192.0.2.1", ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkv1.NodeUIDAnnotation: "x"}}},
		"two": {Subnet: "10.129.0.0/23", HostIP: "192.0.2.2", ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			networkv1.NodeUIDAnnotation: "y", dualstack.HostAnnotation: "2001:db8::2",
		}}},
		"false":     {Subnet: "10.131.0.0/23", HostIP: "10.129.0.7", ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{networkv1.NodeUIDAnnotation: "z"}}},
		"appliance": {Subnet: "10.130.0.0/23", HostIP: "192.0.2.3"},
		"greedy":    {Subnet: "10.128.0.0/14"}, // contains the pods of nodes
		"thief":     {Subnet: "10.129.1.0/24"},
		"pending":   {},
	} {
		host.Name = name
		f.must(objects.hostSubnets.GetStore().Add(&host))
	}
	s := shop()
	s.plugin, s.netIDs, s.hosts = networkplugin.Multitenant, map[string]uint32{"shop": 12}, objects.hostAddresses()
	for family, want := range map[ipfamily.Family]string{
		ipfamily.IPv4: "10.128.0.1/32 10.129.0.1/32 10.130.0.0/23 10.131.0.1/32 192.0.2.1/32 192.0.2.2/32", ipfamily.IPv6: "2001:db8::2/128",
	} {
		if got := strings.Join(sortedKeys(compile(s.of(family)).sets[hostSet].elements), " "); got != want {
			t.Errorf("hosts %s, want %s", got, want)
		}
	}
}

func TestHostSubnetsReachIsolatedPods(t *testing.T) {
	f := newTenants(t)
	f.reaches("db>web web>db")
	prefix := f.address["till"] + "/32"
	host := &networkv1.HostSubnet{ObjectMeta: metav1.ObjectMeta{Name: "appliance"}, Host: "appliance", Subnet: prefix}
	hosts := f.network.NetworkV1().HostSubnets()
	_, err := hosts.Create(f.Context(), host, metav1.CreateOptions{})
	f.must(err)
	f.reaches(allPairs)
	f.must(hosts.Delete(f.Context(), "appliance", metav1.DeleteOptions{}))
	f.reaches("db>web web>db")
}

// plugin sets the cluster's network plugin.
func (f *fixture) plugin(name string) {
	f.Helper()
	network := &networkv1.ClusterNetwork{ObjectMeta: metav1.ObjectMeta{Name: networkv1.ClusterNetworkDefault}, PluginName: name}
	_, err := f.network.NetworkV1().ClusterNetworks().Update(f.Context(), network, metav1.UpdateOptions{})
	f.must(err)
}

// netID sets a project's network ID.
func (f *fixture) netID(project string, id uint32) {
	f.Helper()
	namespace := &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: project}, NetName: project, NetID: id}
	client := f.network.NetworkV1().NetNamespaces()
	_, err := client.Get(f.Context(), project, metav1.GetOptions{})
	if err != nil {
		_, err = client.Create(f.Context(), namespace, metav1.CreateOptions{})
	} else {
		_, err = client.Update(f.Context(), namespace, metav1.UpdateOptions{})
	}
	f.must(err)
}

// newTenants starts the component in multitenant mode with pods in two projects.
func newTenants(t *testing.T) *fixture {
	f := newFixture(t)
	for _, pod := range [][2]string{{"shop", "web"}, {"shop", "db"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	f.netID("shop", 12)
	f.netID("bank", 13)
	f.plugin(networkplugin.Multitenant)
	f.start()
	return f
}

const allPairs = "db>till db>web till>db till>web web>db web>till"

func TestNetworksAreIsolatedAsTheyChange(t *testing.T) {
	f := newTenants(t)
	f.reaches("db>web web>db")
	f.netID("bank", 12) // joins the network of the project shop
	f.reaches(allPairs)
	f.netID("bank", 14) // isolates the project
	f.reaches("db>web web>db")
	f.stop() // the kernel keeps the rules
	f.reaches("db>web web>db")
	f.netID("bank", 0) // makes the project global
	f.start()
	f.reaches(allPairs)
}

func TestRecreatedProjectGetsItsOwnNetwork(t *testing.T) {
	f := newTenants(t)
	f.reaches("db>web web>db")
	former := &networkv1.NetNamespace{ObjectMeta: metav1.ObjectMeta{Name: "bank"}, NetName: "bank", NetID: 0}
	former.Annotations = map[string]string{networkplugin.ProjectUIDAnnotation: "former"}
	_, err := f.network.NetworkV1().NetNamespaces().Update(t.Context(), former, metav1.UpdateOptions{})
	f.must(err)
	f.lease("bank", "new")
	eventually.True(t, "rejection of a new pod", func() bool {
		return strings.Contains(f.await("bank", "new").Error, `project "bank" has no network ID yet`)
	})
	f.reaches("db>web web>db")
	f.netID("bank", 13)
	f.reaches("db>web new>till till>new web>db")
}

func TestModeChangesWhileTheNodeRuns(t *testing.T) {
	f := newTenants(t)
	f.policy("none", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}`)
	f.reaches("web>db") // policies apply too
	f.plugin(networkplugin.NetworkPolicy)
	f.reaches("db>till till>db web>db web>till")
	f.plugin(networkplugin.Subnet)
	f.reaches(allPairs)
	f.plugin(networkplugin.Multitenant)
	f.reaches("web>db")
	f.must(f.network.NetworkV1().ClusterNetworks().Delete(t.Context(), networkv1.ClusterNetworkDefault, metav1.DeleteOptions{}))
	f.netID("bank", 12) // the change causes the component to write the rules
	f.reaches("db>till till>db web>db web>till")
}

func TestIsolationEndsConnections(t *testing.T) {
	f := newTenants(t)
	f.netID("bank", 12)
	f.reaches(allPairs)
	echo := f.connection("till", "web")
	if !echo() {
		t.Fatal("no response in a joined network")
	}
	f.netID("bank", 13)
	eventually.True(t, "end of the connection", func() bool { return !echo() })
}

func TestPodWaitsForItsNetwork(t *testing.T) {
	f := newTenants(t)
	f.lease("new", "pod")
	if response := f.await("new", "pod"); !strings.Contains(response.Error, `project "new" has no network ID yet`) {
		t.Errorf("response %q", response.Error)
	}
	f.reaches("db>web web>db")
	f.netID("new", 12)
	if response := f.await("new", "pod"); response.Error != "" {
		t.Fatal(response.Error)
	}
	// The kernel already has the rules, although the API server does not have the pod.
	for _, from := range []string{"web", "pod"} {
		if _, err := f.pods[from].Ask("udp4", f.address["db"]+":80"); err != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestOtherMachinesCannotSendAsPods sends packets from another machine with the source address of a
// pod on the node.
func TestOtherMachinesCannotSendAsPods(t *testing.T) {
	f := newTenants(t)
	f.newOutside()
	sources := f.receive("web")
	for _, tt := range []struct{ plugin, want string }{
		{networkplugin.NetworkPolicy, f.address["db"] + " 203.0.113.1"}, {networkplugin.Multitenant, "203.0.113.1"},
	} {
		f.plugin(tt.plugin)
		restricted := tt.plugin == networkplugin.Multitenant
		eventually.True(t, "rules of "+tt.plugin, func() bool {
			_, err := f.pods["till"].Probe("udp4", f.address["db"]+":80")
			return err != nil == restricted
		})
		f.sendAs(f.address["db"], f.address["web"])
		f.sendAs("203.0.113.1", f.address["web"]) // the last datagram
		var got []string
		for len(got) == 0 || got[len(got)-1] != "203.0.113.1" {
			got = append(got, <-sources)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: packets from %s, want %s", tt.plugin, text, tt.want)
		}
	}
}

// receive returns the source addresses of the datagrams that arrive on port 90 of a pod.
func (f *fixture) receive(pod string) <-chan string {
	f.Helper()
	sources := make(chan string, 16)
	f.pods[pod].Do(f.T, func() error {
		packets, err := net.ListenPacket("udp4", ":90")
		if err != nil {
			return err
		}
		f.Cleanup(func() { packets.Close() })
		go func() {
			buffer := make([]byte, 1)
			for {
				_, from, err := packets.ReadFrom(buffer)
				if err != nil {
					return
				}
				source, _, _ := net.SplitHostPort(from.String())
				sources <- source
			}
		}()
		return nil
	})
	return sources
}

// sendAs assigns a source address to the machine and sends a datagram from it to port 90 of a pod.
func (f *fixture) sendAs(source, pod string) {
	f.Helper()
	f.outside.Do(f.T, func() error {
		link, err := netlinksafe.LinkByName("eth0")
		if err != nil {
			return err
		}
		address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(source).To4(), Mask: net.CIDRMask(32, 32)}}
		if err := netlink.AddrReplace(link, address); err != nil {
			return err
		}
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(source)}, &net.UDPAddr{IP: net.ParseIP(pod), Port: 90})
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("x"))
		return err
	})
}

func TestPodOfAnotherNodeIsIsolated(t *testing.T) {
	f := newTenants(t)
	f.lease("bank", "far") // on another node, according to the API
	f.must(os.Remove(filepath.Join(f.enforcer.LeaseDir, f.address["far"]+".json")))
	f.reaches("db>web web>db") // the network of the pod "far" is unknown
	far := object("bank", "far")
	far.Spec.NodeName, far.Status = "two", corev1.PodStatus{Phase: corev1.PodRunning, PodIP: f.address["far"]}
	_, err := f.client.CoreV1().Pods("bank").Create(t.Context(), far, metav1.CreateOptions{})
	f.must(err)
	f.reaches("db>web far>till till>far web>db")
	for pair, want := range map[[2]string]bool{
		{"web", "db"}: false, {"web", "till"}: true, {"till", "far"}: false, {"web", "far"}: true,
	} {
		from, to := netip.MustParseAddr(f.address[pair[0]]), netip.MustParseAddr(f.address[pair[1]])
		restricted, err := Isolation(f.enforcer.Table, f.enforcer.Networks)(t.Context(), from, to)
		if err != nil || restricted != want {
			t.Errorf("isolation of %v: %t, %v, want %t", pair, restricted, err, want)
		}
	}
	f.must(f.client.CoreV1().Pods("bank").Delete(t.Context(), "far", metav1.DeleteOptions{}))
	f.reaches("db>web web>db")
}
