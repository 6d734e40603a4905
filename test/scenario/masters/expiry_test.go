package masters

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// checkExpiry tests three masters and a node that were off until all their certificates had
// expired. The masters issue new certificates to themselves. The node needs a token that was issued
// for its name.
func checkExpiry(t *testing.T, masters map[string]*kit.Cluster, node *kit.Cluster) {
	t.Helper()
	first := masters["first"]
	for _, host := range []*kit.Cluster{node, masters["third"], masters["second"], first} {
		host.MustSlipway("down")
	}
	node.ExpireCertificates(first)
	for _, master := range masters {
		master.ExpireCertificates(first)
	}
	starts := map[string]*exec.Cmd{} // each master waits for etcd's quorum
	for name, master := range masters {
		starts[name] = master.StartSlipway(nil, "up")
	}
	for name, start := range starts {
		if err := start.Wait(); err != nil {
			t.Fatalf("start of master %s with expired certificates: %v", name, err)
		}
		masters[name].Connect()
	}
	waitMembers(first, 3, "voter")
	if result := node.Slipway("up"); result.Code == 0 || !strings.Contains(result.Stderr, "slipway token create --node worker") {
		t.Errorf("start of the node with expired certificates: %+v", result)
	}
	node.JoinWith(masters["second"].APIURL(), strings.TrimSpace(first.MustSlipway("token", "create", "--node", "worker")))
	waitApplication(node)
	waitControllers(first, "after-expiry")
}
