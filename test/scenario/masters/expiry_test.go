package masters

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// checkExpiry tests three masters and a node that were off until all of their certificates had
// expired. The masters issue new certificates for themselves. The node needs a token that was
// issued for its name.
func checkExpiry(t *testing.T, masters map[string]*kit.Cluster, node *kit.Cluster) {
	t.Helper()
	first, all := masters["first"], slices.Collect(maps.Values(masters))
	together(t, append(all, node), "down")
	node.ExpireCertificates(first)
	for _, master := range all {
		master.ExpireCertificates(first)
	}
	together(t, all, "up") // start them together, because each waits for etcd's quorum
	for _, master := range all {
		master.Connect()
	}
	waitMembers(first, 3, "voter")
	if result := node.Slipway("up"); result.Code == 0 || !strings.Contains(result.Stderr, "slipway token create --node worker") {
		t.Errorf("start of the node with expired certificates: %+v", result)
	}
	node.JoinWith(masters["second"].APIURL(), strings.TrimSpace(first.MustSlipway("token", "create", "--node", "worker")))
	waitApplication(node)
	waitControllers(first, "after-expiry")
}

// together runs a slipway command on all hosts at the same time, and waits for it.
func together(t *testing.T, hosts []*kit.Cluster, command string) {
	t.Helper()
	var running []*exec.Cmd
	for _, host := range hosts {
		running = append(running, host.StartSlipway(nil, command))
	}
	for i, r := range running {
		if err := r.Wait(); err != nil {
			t.Fatalf("slipway %s at %s: %v", command, hosts[i].Address, err)
		}
	}
}
