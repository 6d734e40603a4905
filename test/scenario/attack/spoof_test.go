package attack

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

const frameImage = "localhost/slipway-test-frame:current"

// buildFrameImage builds an image that contains the program in testdata/frame.
func buildFrameImage(t *testing.T, c *kit.Cluster) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "frame"), "./testdata/frame")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM "+kit.ToolsImage+"\nCOPY frame /bin/frame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag="+frameImage, dir)
}

// mac returns the MAC address that the network plugin assigns to a pod or to the gateway.
func mac(address netip.Addr) net.HardwareAddr {
	return append([]byte{0x0a, 0x58}, address.AsSlice()...)
}

// ethernet returns a frame with the given content, in hexadecimal, as input for the frame program.
func ethernet(to, from netip.Addr, kind uint16, data ...[]byte) string {
	return hex.EncodeToString(slices.Concat(mac(to), mac(from), binary.BigEndian.AppendUint16(nil, kind), slices.Concat(data...), []byte("forged")))
}

// datagram returns an IP packet with a UDP datagram to port 7. Its checksums are missing or wrong,
// but a raw socket receives the packet anyway.
func datagram(from, to netip.Addr) []byte {
	return slices.Concat([]byte{0x45, 0, 0, 34, 0, 0, 0, 0, 64, 17, 0, 0}, from.AsSlice(), to.AsSlice(), []byte{16, 0, 0, 7, 0, 14, 0, 0}, []byte("forged"))
}

// TestPodCannotTakeAddressOfAnother sends forged frames from a pod with raw sockets, which the
// anyuid SCC allows.
func TestPodCannotTakeAddressOfAnother(t *testing.T) {
	s := tenants(t)
	buildFrameImage(t, s.Cluster)
	for _, project := range []string{s.evil, s.shop} {
		s.OC("adm", "policy", "add-scc-to-user", "anyuid", "--serviceaccount=default", "--namespace="+project)
	}
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), strings.Replace(sleeper("spoofer", "{}", "{}"), kit.ToolsImage, frameImage, 1))
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), strings.Replace(sleeper("victim", "{}", "{}"), kit.ToolsImage, frameImage, 1))
	evil, shop := s.In(s.evil), s.In(s.shop)
	attacker, victim := netip.MustParseAddr(evil.WaitPodRunning("spoofer").Status.PodIP), netip.MustParseAddr(shop.WaitPodRunning("victim").Status.PodIP)
	nodes, err := s.Client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gateway := netip.MustParsePrefix(nodes.Items[0].Spec.PodCIDR).Masked().Addr().Next()

	arpReply := func(addr, request netip.Addr) []byte {
		return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 2}, mac(attacker), addr.AsSlice(), make([]byte, 6), request.AsSlice())
	}
	const ipv4, arp, vlan, ipv6 = 0x0800, 0x0806, 0x8100, 0x86dd
	frames := []string{
		ethernet(victim, attacker, arp, arpReply(gateway, victim)),
		ethernet(gateway, attacker, arp, arpReply(victim, gateway)),
		ethernet(victim, gateway, ipv4, datagram(gateway, victim)),
		ethernet(gateway, attacker, ipv4, datagram(gateway, victim)),
		ethernet(gateway, attacker, ipv4, datagram(netip.MustParseAddr("192.0.2.1"), victim)),
		ethernet(victim, attacker, ipv4, datagram(attacker, victim)),
		ethernet(victim, attacker, vlan, []byte{0, 7, 8, 0}, datagram(attacker, victim)),
		ethernet(victim, attacker, ipv6, []byte{0x60}, make([]byte, 39)),
	}
	lines := shop.StartOC("exec", "victim", "--", "frame", "show", "honest")
	if line, err := lines.ReadString('\n'); err != nil || line != "listening\n" {
		t.Fatalf("the victim does not listen: %q, %v", line, err)
	}
	evil.Exec("spoofer", append([]string{"frame", "send"}, frames...)...)
	evil.Exec("spoofer", "frame", "tell", victim.String(), "honest")
	output, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(output), "honest") || strings.Contains(string(output), "forged") {
		t.Errorf("the victim received (%v):\n%s", err, output)
	}
	if table := shop.Exec("victim", "cat", "/proc/net/arp"); !strings.Contains(table, mac(gateway).String()) {
		t.Errorf("the victim's ARP table does not contain the gateway's address:\n%s", table)
	}
}

func TestTenantGetsNoRawSockets(t *testing.T) {
	s := tenants(t)
	buildFrameImage(t, s.Cluster)
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), strings.Replace(sleeper("pod", "{}", "{}"), kit.ToolsImage, frameImage, 1))
	evil := s.In(s.evil)
	evil.WaitPodRunning("pod")
	const rawSockets = 1 << 13
	for line := range strings.Lines(evil.Exec("pod", "cat", "/proc/self/status")) {
		var set uint64
		if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") {
			if _, err := fmt.Sscanf(value, "%x", &set); err != nil || set&rawSockets != 0 {
				t.Errorf("the pod can have raw sockets (%v): %s", err, line)
			}
		}
	}
	if output, err := evil.TryOC("exec", "pod", "--", "frame", "send"); err == nil || !strings.Contains(err.Error(), "operation not permitted") {
		t.Errorf("the pod opens a raw socket: %v\n%s", err, output)
	}
	evil.Exec("pod", "frame", "ping", s.Address.String()) // ping requires no capability
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "pods"), strings.Replace(sleeper("raw", "{}", "{}"), "command:", "securityContext: {capabilities: {add: [NET_RAW]}}, command:", 1), "NET_RAW")
}
