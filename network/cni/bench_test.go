package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/shaping"
	"github.com/slipway-platform/slipway/network/spoofcheck"
)

// TestMain runs the test program as the CNI plugin if the environment variables of a container
// runtime are set.
func TestMain(m *testing.M) {
	if os.Getenv("CNI_COMMAND") != "" {
		Main()
		return
	}
	hosttest.Main(m)
}

const subnet = "10.128.2.0/24"

// bench is a host with the agent's bridge and nftables table.
type bench struct {
	*testing.T
	config Config
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, config: Config{
		CNIVersion: "1.1.0",
		Name:       "pods",
		Type:       Type,
		Bridge:     "slipway0",
		PodCIDR:    netip.MustParsePrefix(subnet),
		StateDir:   t.TempDir(),
		NFTTable:   "slipway",
		Hairpin:    true,
	}}
	b.makeBridge()
	b.makeTable()
	t.Cleanup(func() {
		b.removeBridge()
		links, _ := podDevices()
		for name := range links {
			_ = removeVeth(name)
		}
		b.must(shaping.RemoveOrphans())
		if err := nat.Delete(context.Background(), nat.Table{Family: "ip", Name: "slipway"}, nat.Table{Family: "netdev", Name: "slipway"}); err != nil {
			t.Error(err)
		}
	})
	setSysctl(t, "net/ipv4/ip_forward", "1")
	return b
}

func (b *bench) makeBridge() {
	b.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = b.config.Bridge
	attrs.HardwareAddr = HardwareAddress(Gateway(b.config.PodCIDR))
	b.must(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	link, err := netlink.LinkByName(b.config.Bridge)
	b.must(err)
	address, err := netlink.ParseAddr(netip.PrefixFrom(Gateway(b.config.PodCIDR), b.config.PodCIDR.Bits()).String())
	b.must(err)
	b.must(netlink.AddrAdd(link, address))
	b.must(netlink.LinkSetUp(link))
	setSysctl(b.T, "net/ipv4/conf/"+b.config.Bridge+"/route_localnet", "1")
}

func (b *bench) removeBridge() {
	if link, err := netlink.LinkByName(b.config.Bridge); err == nil {
		b.must(netlink.LinkDel(link))
	}
}

func (b *bench) makeTable() {
	b.Helper()
	b.must(nat.Ensure(b.Context(), nat.Network{
		Table:       b.config.NFTTable,
		Bridge:      b.config.Bridge,
		Pods:        []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
		ServiceCIDR: netip.MustParsePrefix("172.30.0.0/16"),
	}))
}

// makeSecondTable creates the IPv6 table.
func (b *bench) makeSecondTable() {
	b.Helper()
	b.must(nat.Ensure(b.Context(), nat.Network{
		Table: b.config.NFTTable, Bridge: b.config.Bridge,
		Pods: []netip.Prefix{netip.MustParsePrefix("fd01::/48")}, ServiceCIDR: netip.MustParsePrefix("fd02::/112"),
	}))
	b.Cleanup(func() {
		if err := nat.Delete(context.Background(), nat.Table{Family: "ip6", Name: b.config.NFTTable}); err != nil {
			b.Error(err)
		}
	})
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// plugin runs the plugin as a process for a pod and returns its standard output.
func (b *bench) plugin(command string, pod hosttest.Namespace, change func(*Config)) ([]byte, error) {
	config := b.config
	if change != nil {
		change(&config)
	}
	input, err := json.Marshal(config)
	b.must(err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_PATH=/nowhere")
	if pod.Name != "" {
		cmd.Env = append(cmd.Env, "CNI_CONTAINERID="+pod.Name, "CNI_IFNAME=eth0", "CNI_NETNS="+pod.Path)
	}
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s%s", command, err, out, &stderr)
	}
	return out, nil
}

func ports(mappings ...portMapping) func(*Config) {
	return func(c *Config) { c.RuntimeConfig.PortMappings = mappings }
}

// pod creates a namespace, adds it to the network, and runs a server on port 80 in it.
func (b *bench) pod(name string, change func(*Config)) (pod hosttest.Namespace, address string) {
	b.Helper()
	pod = hosttest.NewNamespace(b.T, name)
	result := b.add(pod, change)
	pod.Serve(b.T, 80)
	return pod, result.IPs[0].Address.IP.String()
}

func (b *bench) add(pod hosttest.Namespace, change func(*Config)) *current.Result {
	b.Helper()
	out, err := b.plugin("ADD", pod, change)
	b.must(err)
	var result current.Result
	b.must(json.Unmarshal(out, &result))
	return &result
}

// checkResponse checks the response that a namespace receives from an address.
func (b *bench) checkResponse(from hosttest.Namespace, network, address, want string) {
	b.Helper()
	got, err := from.Ask(network, address)
	if err != nil {
		b.Errorf("from %s to %s: %v", from.Name, address, err)
		return
	}
	if got != want {
		b.Errorf("from %s to %s: got %q, want %q", from.Name, address, got, want)
	}
}

// leftovers lists the pods' devices, leases, source filters and ports on the host.
func (b *bench) leftovers() []string {
	b.Helper()
	var remaining []string
	files, _ := filepath.Glob(filepath.Join(b.config.StateDir, "pods", "*.json"))
	remaining = append(remaining, files...)
	devices, err := podDevices()
	b.must(err)
	for name := range devices {
		remaining = append(remaining, name)
	}
	owners, err := nat.Owners(b.Context(), b.config.NFTTable, b.config.families()...)
	b.must(err)
	for owner := range owners {
		remaining = append(remaining, "host ports of "+owner)
	}
	chains, err := spoofcheck.List(b.config.NFTTable)
	b.must(err)
	for device := range chains {
		remaining = append(remaining, "check of "+device)
	}
	return remaining
}

func (b *bench) nothingLeft() {
	b.Helper()
	if remaining := b.leftovers(); len(remaining) > 0 {
		b.Errorf("left over: %v", remaining)
	}
}

func setSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}
