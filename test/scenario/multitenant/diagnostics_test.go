package multitenant

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// networkCheck runs the NetworkCheck diagnostic, and fails the test if it reports an error.
func networkCheck(t *testing.T, c *kit.Cluster, flags ...string) {
	t.Helper()
	output, err := c.TryOC(append([]string{"adm", "diagnostics", "NetworkCheck"}, flags...)...)
	if err != nil || !strings.Contains(output, "Errors seen: 0") {
		t.Errorf("oc adm diagnostics NetworkCheck: %v\n%s", err, output)
	}
}

func TestNetworkCheckReportsBrokenConnections(t *testing.T) {
	s := sharedTenants(t)
	outside, err := net.Listen("tcp4", net.JoinHostPort(s.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	networkCheck(t, s.Cluster, "--external-address="+outside.Addr().String())

	// Make the distant host drop VXLAN packets, and stop the server outside the cluster.
	const rules = `table ip fault { chain vxlan { type filter hook prerouting priority -400; udp dport 4789 drop; }; }`
	nft := func(arguments ...string) {
		err := s.distant.Do(func() error { return exec.Command("nft", arguments...).Run() })
		if err != nil {
			t.Fatalf("nft %v: %v", arguments, err)
		}
	}
	nft(rules)
	defer nft("delete", "table", "ip", "fault")
	if err := outside.Close(); err != nil {
		t.Fatal(err)
	}
	output, err := s.TryOC("adm", "diagnostics", "NetworkCheck", "--external-address="+outside.Addr().String())
	if err == nil {
		t.Fatalf("the diagnostic reports no problem:\n%s", output)
	}
	for _, want := range []string{
		"pod-to-pod: pods on node " + distant + " cannot reach a pod on node " + second + " (nc: timed out); allow the packets of pods",
		"pod-to-pod: pods on node " + second + " cannot reach a pod on node " + distant,
		"pod-to-service: pods on node " + second + " cannot reach the service of a pod on node " + distant,
		"external: pods on node " + second + " cannot reach " + outside.Addr().String(),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s\n%v", want, err)
		}
	}
	if wrong := "pod-to-pod: pods on node " + second + " cannot reach a pod on node " + s.NodeName(); strings.Contains(err.Error(), wrong) {
		t.Errorf("wrong: %s\n%v", wrong, err)
	}
	if projects := s.OC("get", "namespaces", "-o", `jsonpath={range .items[?(@.status.phase=="Active")]}{.metadata.name} {end}`); strings.Contains(projects, "network-diag-") {
		t.Errorf("projects remain: %s", projects)
	}
}
