package cni

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/nat"
)

func TestAddResult(t *testing.T) {
	b := newBench(t)
	pod := hosttest.NewNamespace(t, "one")
	result := b.add(pod, nil)
	want := &current.Result{
		CNIVersion: "1.1.0",
		Interfaces: []*current.Interface{
			{Name: "slipway0", Mac: "0a:58:0a:80:02:01"},
			{Name: deviceName("one", "eth0"), Mac: result.Interfaces[1].Mac, Mtu: 1500},
			{Name: "eth0", Mac: "0a:58:0a:80:02:02", Mtu: 1500, Sandbox: pod.Path},
		},
		IPs:    result.IPs,
		Routes: []*types.Route{{Dst: result.Routes[0].Dst, GW: result.IPs[0].Gateway}},
	}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	ip := result.IPs[0]
	if got := ip.Address.String() + " by " + ip.Gateway.String(); got != "10.128.2.2/32 by 10.128.2.1" {
		t.Errorf("address: got %s", got)
	}
	if got := result.Routes[0].Dst.String(); got != "0.0.0.0/0" {
		t.Errorf("route: got %s", got)
	}
	if _, err := b.plugin("CHECK", pod, nil); err != nil {
		t.Error(err)
	}
	if _, err := b.plugin("ADD", pod, nil); err == nil {
		t.Error("a second ADD succeeded")
	}
}

func TestPodConnectivity(t *testing.T) {
	b := newBench(t)
	namespace, oneAddress := b.pod("one", nil)
	two, twoAddress := b.pod("two", nil)
	hosttest.Host().Serve(t, 8081)

	b.checkResponse(namespace, "tcp4", twoAddress+":80", "two "+oneAddress)
	b.checkResponse(two, "udp4", oneAddress+":80", "one "+twoAddress)
	b.checkResponse(namespace, "tcp4", oneAddress+":80", "one "+oneAddress)
	b.checkResponse(namespace, "tcp4", "127.0.0.1:80", "one 127.0.0.1")
	b.checkResponse(namespace, "tcp4", "10.128.2.1:8081", "host "+oneAddress)
	b.checkResponse(hosttest.Host(), "tcp4", twoAddress+":80", "two 10.128.2.1")

	// The host must not send redirects; otherwise, pods would bypass its connection tracking.
	for _, pod := range []hosttest.Namespace{namespace, two} {
		pod.Do(t, func() error {
			if got := icmpCounter(t, "InRedirects"); got != "0" {
				t.Errorf("pod %s got %s redirects", pod.Name, got)
			}
			return nil
		})
	}
}

// icmpCounter returns a counter of the current network namespace. The kernel reports counters in
// two lines, "Icmp: <names>" and "Icmp: <values>".
func icmpCounter(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "Icmp:") {
			lines = append(lines, strings.Fields(line))
		}
	}
	if len(lines) != 2 || !slices.Contains(lines[0], name) {
		t.Fatalf("no counter %q in %q", name, lines)
	}
	return lines[1][slices.Index(lines[0], name)]
}

func TestMasqueradeOutsideCluster(t *testing.T) {
	b := newBench(t)
	machine := hosttest.NewNamespace(t, "machine")
	machine.Connect(t, "192.0.2.1/24", "192.0.2.2/24")
	machine.Serve(t, 80)
	namespace, oneAddress := b.pod("one", nil)

	b.checkResponse(namespace, "tcp4", "192.0.2.2:80", "machine 192.0.2.1")
	b.checkResponse(machine, "tcp4", oneAddress+":80", "one 192.0.2.2")
}

// service contains rules that simulate kube-proxy, which translates service addresses in its own
// table.
const service = `
table ip kube-proxy {
	chain prerouting { type nat hook prerouting priority dstnat; ip daddr 172.30.0.10 tcp dport 80 dnat to %[1]s:80; }
	chain postrouting { type nat hook postrouting priority srcnat; ip saddr %[1]s ip daddr %[1]s masquerade; }
}`

func TestServiceToLocalPods(t *testing.T) {
	for _, bridged := range []string{"0", "1"} {
		t.Run("bridge-nf-call-iptables="+bridged, func(t *testing.T) {
			b := newBench(t)
			setSysctl(t, "net/bridge/bridge-nf-call-iptables", bridged)
			namespace, oneAddress := b.pod("one", nil)
			two, twoAddress := b.pod("two", nil)

			cmd := exec.Command("nft", "-f", "-")
			cmd.Stdin = strings.NewReader(fmt.Sprintf(service, twoAddress))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Cleanup(func() { _ = exec.Command("nft", "delete", "table", "ip", "kube-proxy").Run() })

			b.checkResponse(namespace, "tcp4", "172.30.0.10:80", "two "+oneAddress)
			b.checkResponse(two, "tcp4", "172.30.0.10:80", "two 10.128.2.1")
		})
	}
}

// TestPodWithReusedAddressGetsNoOldConnections removes a pod that has an open connection, and
// assigns the pod's address to a new pod.
func TestPodWithReusedAddressGetsNoOldConnections(t *testing.T) {
	b := newBench(t)
	former, address := b.pod("former", nil)
	_, peer := b.pod("peer", nil)
	for _, network := range []string{"udp4", "tcp4"} {
		b.checkResponse(former, network, peer+":80", "peer "+address)
	}
	connections := func() (lines []string) {
		flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		b.must(err)
		for _, flow := range flows {
			if strings.Contains(flow.String(), "="+address+" ") {
				lines = append(lines, flow.String())
			}
		}
		return lines
	}
	_, err := b.plugin("DEL", former, nil)
	b.must(err)
	former.Delete()
	if len(connections()) < 2 {
		t.Errorf("the kernel has no connections of the former pod: %q", connections())
	}
	b.must(os.Remove(filepath.Join(b.config.leases().dir, lastFile)))
	result := b.add(hosttest.NewNamespace(t, "new"), nil)
	if got := result.IPs[0].Address.IP.String(); got != address {
		t.Fatalf("the new pod has the address %s, want %s again", got, address)
	}
	if got := connections(); len(got) > 0 {
		t.Errorf("the new pod has connections of the former one: %q", got)
	}
}

func TestDelWithoutNamespace(t *testing.T) {
	b := newBench(t)
	mapping := ports(portMapping{HostPort: 8080, ContainerPort: 80, Protocol: "tcp"})
	pod, _ := b.pod("one", mapping)
	pod.Delete()
	namespace := hosttest.Namespace{Name: "one"}
	for range 2 {
		// DEL must also work without port mappings in the configuration, because the lease contains
		// them.
		_, err := b.plugin("DEL", namespace, nil)
		b.must(err)
	}
	b.nothingLeft()
}

func TestFailedAddCleansUp(t *testing.T) {
	b := newBench(t)
	pod := hosttest.NewNamespace(t, "one")
	for name, change := range map[string]func(*Config){
		"no bridge":        func(c *Config) { c.Bridge = "nothing0" },
		"no table":         func(c *Config) { c.NFTTable = "nothing"; ports(portMapping{HostPort: 1, ContainerPort: 1})(c) },
		"invalid protocol": ports(portMapping{HostPort: 1, ContainerPort: 1, Protocol: "icmp"}),
		"port too high":    ports(portMapping{HostPort: 70000, ContainerPort: 1}),
	} {
		if _, err := b.plugin("ADD", pod, change); err == nil {
			t.Errorf("%s: ADD succeeded", name)
		}
		b.nothingLeft()
	}
}

func TestConcurrentAdds(t *testing.T) {
	b := newBench(t)
	const pods = 12
	var (
		wait      sync.WaitGroup
		lock      sync.Mutex
		addresses = map[string]bool{}
	)
	for i := range pods {
		pod := hosttest.NewNamespace(t, fmt.Sprintf("pod-%d", i))
		mapping := ports(portMapping{HostPort: 9000 + i, ContainerPort: 80})
		wait.Go(func() {
			out, err := b.plugin("ADD", pod, mapping)
			if err != nil {
				t.Error(err)
				return
			}
			var result current.Result
			if err := json.Unmarshal(out, &result); err != nil {
				t.Error(err)
				return
			}
			lock.Lock()
			defer lock.Unlock()
			addresses[result.IPs[0].Address.String()] = true
		})
	}
	wait.Wait()
	owners, err := nat.Owners(t.Context(), b.config.NFTTable, b.config.families()...)
	b.must(err)
	if len(addresses) != pods || len(owners) != pods {
		t.Errorf("%d pods got %d addresses and %d host ports", pods, len(addresses), len(owners))
	}
	valid := func(c *Config) {
		c.ValidAttachments = []types.GCAttachment{{ContainerID: "pod-3", IfName: "eth0"}}
	}
	_, err = b.plugin("GC", hosttest.Namespace{}, valid)
	b.must(err)
	if remaining := b.leftovers(); len(remaining) != 4 {
		t.Errorf("GC left %v", remaining)
	}
}

func TestInvalidConfiguration(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Config){
		"no bridge":     func(c *Config) { c.Bridge = "" },
		"IPv6 subnet":   func(c *Config) { c.PodCIDR = netip.MustParsePrefix("fd00::/64") },
		"subnet of two": func(c *Config) { c.PodCIDR = netip.MustParsePrefix("10.1.1.0/31") },
	} {
		_, err := b.plugin("STATUS", hosttest.Namespace{}, change)
		if err == nil || !strings.Contains(err.Error(), "check network configuration") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	_, err := b.plugin("STATUS", hosttest.Namespace{}, nil)
	b.must(err)
	b.removeBridge()
	if _, err := b.plugin("STATUS", hosttest.Namespace{}, nil); err == nil {
		t.Error("STATUS succeeded without a bridge")
	}
}
