package agent

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func newAgent(t *testing.T, node *corev1.Node) *Agent {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "slipway-cni"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Agent{
		NodeName:      "host",
		Client:        fake.NewClientset(node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{PodCIDR: "10.129.0.0/23"}}),
		Bridge:        "slipway0",
		NFTTable:      "slipway",
		DualStack:     singleNetwork(),
		ServiceCIDR:   netip.MustParsePrefix("172.30.0.0/16"),
		ConfDir:       filepath.Join(dir, "conf"),
		BinDir:        dir,
		StateDir:      filepath.Join(dir, "state"),
		DNSDevice:     "slipway-dns",
		DNSIP:         netip.MustParseAddr("169.254.20.10"),
		CheckInterval: 200 * time.Millisecond,
	}
}

var leftovers = CleanupConfig{Bridge: "slipway0", Devices: []string{"slipway-dns", vxlanDevice}, NFTTable: "slipway", NetnsDir: "/run/netns"}

// start runs the agent until the test ends, and then removes the objects that the agent created.
func start(t *testing.T, a *Agent) *componenttest.Component {
	t.Helper()
	t.Cleanup(func() {
		if err := Cleanup(context.Background(), leftovers); err != nil {
			t.Error(err)
		}
	})
	return componenttest.Start(t, a.Run)
}

// serve runs the agent and waits until it is ready.
func serve(t *testing.T, a *Agent) *componenttest.Component {
	t.Helper()
	agent := start(t, a)
	agent.WaitReady()
	return agent
}

// addresses lists the IPv4 addresses of a device that is up.
func addresses(name string) string {
	device, err := net.InterfaceByName(name)
	if err != nil || device.Flags&net.FlagUp == 0 {
		return ""
	}
	all, _ := device.Addrs()
	var v4 []string
	for _, a := range all {
		if strings.Contains(a.String(), ".") {
			v4 = append(v4, a.String())
		}
	}
	return strings.Join(v4, " ")
}

func output(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", command, err, out)
	}
	return string(out)
}

func node(podCIDR string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host"}, Spec: corev1.NodeSpec{PodCIDR: podCIDR}}
}

func TestReadyAfterSubnetAssignment(t *testing.T) {
	a := newAgent(t, node(""))
	stale := a.configFile()
	if err := os.MkdirAll(a.ConfDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	agent := start(t, a)
	eventually.True(t, "configuration of an earlier start is removed", func() bool {
		_, err := os.Stat(stale)
		return os.IsNotExist(err)
	})
	if agent.Ready() {
		t.Fatal("ready without a subnet")
	}
	if _, err := a.Client.CoreV1().Nodes().Update(t.Context(), node("10.128.4.0/23"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	agent.WaitReady()

	if got := addresses("slipway0"); got != "10.128.4.1/23" {
		t.Errorf("address of the bridge: got %q", got)
	}
	if got := addresses("slipway-dns"); got != "169.254.20.10/32" {
		t.Errorf("address of the DNS device: got %q", got)
	}
	forward, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil || strings.TrimSpace(string(forward)) != "1" {
		t.Errorf("ip_forward: got %q, %v", forward, err)
	}
	data, err := os.ReadFile(a.configFile())
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"cniVersion": "1.1.0", "name": "slipway", "plugins": []any{map[string]any{
		"type": "slipway-cni", "bridge": "slipway0",
		"capabilities": map[string]any{"portMappings": true, "bandwidth": true, "io.kubernetes.cri.pod-annotations": true},
		"podCIDR":      "10.128.4.0/23", "stateDir": a.StateDir, "nftTable": "slipway", "hairpin": true,
		"clusterNetworks": []any{"10.128.0.0/14", "172.30.0.0/16", "169.254.20.10/32"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CNI configuration (-want +got):\n%s", diff)
	}
}

func TestAgentRepairsDamage(t *testing.T) {
	serve(t, newAgent(t, node("10.128.4.0/23")))
	for name, damage := range map[string][]string{
		"bridge removed":     {"ip", "link", "del", "slipway0"},
		"bridge down":        {"ip", "link", "set", "slipway0", "down"},
		"address removed":    {"ip", "addr", "flush", "dev", "slipway0"},
		"DNS device removed": {"ip", "link", "del", "slipway-dns"},
		"table removed":      {"nft", "delete", "table", "ip", "slipway"},
		"rules removed":      {"nft", "flush", "table", "ip", "slipway"},
		"forwarding off":     {"sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward"},
	} {
		output(t, damage...)
		eventually.True(t, name, func() bool {
			table, err := exec.Command("nft", "list", "table", "ip", "slipway").Output()
			forward, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
			return addresses("slipway0") == "10.128.4.1/23" && addresses("slipway-dns") == "169.254.20.10/32" &&
				err == nil && strings.Contains(string(table), "masquerade") && string(forward) == "1\n"
		})
	}
}

func TestAgentFollowsSubnetChange(t *testing.T) {
	a := newAgent(t, node("10.128.4.0/23"))
	serve(t, a)
	if _, err := a.Client.CoreV1().Nodes().Update(t.Context(), node("10.128.8.0/23"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "bridge and configuration have the new subnet", func() bool {
		data, _ := os.ReadFile(a.configFile())
		return addresses("slipway0") == "10.128.8.1/23" && strings.Contains(string(data), "10.128.8.0/23")
	})
}

func TestAgentReportsErrors(t *testing.T) {
	never := func() { t.Error("ready") }
	a := newAgent(t, node("10.128.4.0/23"))
	a.BinDir = t.TempDir()
	if err := a.Run(t.Context(), never); err == nil || !strings.Contains(err.Error(), "find CNI plugin") {
		t.Errorf("without the plugin: got %v", err)
	}

	a = newAgent(t, node("10.128.4.0/23"))
	a.Bridge = "lo"
	if err := a.Run(t.Context(), never); err == nil || !strings.Contains(err.Error(), `create bridge "lo"`) {
		t.Errorf("with a name in use: got %v", err)
	}
}

func TestCleanupRestoresHost(t *testing.T) {
	state := func() string { return output(t, "ip", "-o", "link") + output(t, "nft", "list", "tables") }
	before := state()
	serve(t, newAgent(t, node("10.128.4.0/23"))).Stop()

	for _, family := range []string{"ip", "ip6"} {
		output(t, "nft", "add", "table", family, "kube-proxy")
	}
	pod := hosttest.NewNamespace(t, "cni-0000")
	other := hosttest.NewNamespace(t, "other")
	output(t, "ip", "link", "add", "pod0123456789ab", "master", "slipway0", "type", "veth", "peer", "name", "eth0", "netns", "cni-0000")
	output(t, "ip", "link", "add", "podba9876543210", "type", "veth", "peer", "name", "eth0", "netns", "other")
	if state() == before {
		t.Fatal("nothing to clean up")
	}
	for range 2 {
		if err := Cleanup(t.Context(), leftovers); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("devices and tables (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(pod.Path); !os.IsNotExist(err) {
		t.Errorf("namespace of the pod still exists: %v", err)
	}
	if _, err := os.Stat(other.Path); err != nil {
		t.Errorf("a namespace of another program is missing: %v", err)
	}
}

// TestBridgeKeepsItsMTU adds a host's only pod and removes it. The bridge must keep its MTU,
// because the next pod gets the bridge's MTU.
func TestBridgeKeepsItsMTU(t *testing.T) {
	t.Cleanup(func() { output(t, "ip", "link", "delete", "bridge9") })
	if err := ensureBridge("bridge9", netip.MustParsePrefix("10.128.2.1/23"), 1450); err != nil {
		t.Fatal(err)
	}
	output(t, "ip", "link", "add", "pod9", "mtu", "1450", "type", "veth", "peer", "name", "peer9")
	output(t, "ip", "link", "set", "pod9", "master", "bridge9")
	output(t, "ip", "link", "delete", "pod9")
	if device, err := net.InterfaceByName("bridge9"); err != nil || device.MTU != 1450 {
		t.Errorf("the bridge is %+v, %v", device, err)
	}
}
