package masters

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// loseQuorum permanently loses two of three masters. The first master must continue alone with all
// data, and a lost master must not be able to return with its previous data. A new host with the
// lost master's name then joins and leaves.
func loseQuorum(t *testing.T, w *writers, first, second, fourth, node *kit.Cluster) {
	t.Helper()
	fourth.KillEverything()
	waitRefusal(first, "etcd works")
	second.KillEverything()
	waitRefusal(first, "not confirmed")
	first.MustSlipway("etcd", "reset", "--yes")
	waitMembers(first, 1, "voter")
	w.checkMaster(t, "first", first)
	waitControllers(first, "after-reset")
	waitApplication(node)

	result := second.Slipway("up")
	if result.Code == 0 || !strings.Contains(result.Stderr, "run `slipway down --purge` and let it join again") {
		t.Errorf("a lost master returned with its former data: %+v", result)
	}
	first.OC("delete", "node", "second", "fourth")

	again := first.JoinMaster("second", kit.Options{})
	waitMembers(first, 1, "learner")
	w.checkMaster(t, "second", again)
	again.MustSlipway("leave")
	waitMembers(first, 0, "learner")
}

// waitRefusal waits until `slipway etcd reset` without a confirmation fails with the given message.
func waitRefusal(c *kit.Cluster, message string) {
	c.WaitFor("refusal of a reset: "+message, func(context.Context) error {
		if result := c.Slipway("etcd", "reset"); result.Code == 0 || !strings.Contains(result.Stderr, message) {
			return fmt.Errorf("slipway etcd reset: %+v", result)
		}
		return nil
	})
}
