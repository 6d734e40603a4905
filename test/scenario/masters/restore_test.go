package masters

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// restoreMasters loses all masters and restores three masters on machines with other addresses. The
// archive of one master contains all objects. The other masters join again. The node finds the
// masters through the load balancer, which has the masters' public address.
func restoreMasters(t *testing.T, w *writers, lb *balancer, first, second, fifth, node *kit.Cluster) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "first.tar.gz")
	first.MustSlipway("backup", archive)
	former := map[string]bool{}
	for _, master := range []*kit.Cluster{first, second, fifth} {
		master.KillEverything()
		master.MustSlipway("down", "--purge")
		former[master.Address.String()] = true
	}
	for _, master := range []*kit.Cluster{first, second, fifth} {
		if err := master.Move(master.NextAddress()); err != nil {
			t.Fatal(err)
		}
		if former[master.Address.String()] {
			t.Fatalf("a restored master has the former address %s", master.Address)
		}
	}
	first.MustSlipway("restore", archive)
	first.Up()
	first.OC("delete", "node", "fifth") // the archive contains it
	for _, master := range []*kit.Cluster{second, fifth} {
		master.JoinWith(first.APIURL(), strings.TrimSpace(first.MustSlipway("token", "create", "--role", "master")))
		master.Connect()
	}
	waitMembers(first, 3, "voter")
	lb.configure(first, 3)
	start := time.Now()
	first.WaitFor("renewal of the node's lease", func(ctx context.Context) error {
		lease, err := first.Client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "worker", metav1.GetOptions{})
		if err == nil && lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: start}) {
			err = fmt.Errorf("the lease was renewed at %v", lease.Spec.RenewTime)
		}
		return err
	})
	for name, master := range map[string]*kit.Cluster{"first": first, "second": second, "fifth": fifth} {
		w.checkMaster(t, name, master)
	}
	waitControllers(fifth, "after-restore")
	waitApplication(node, second)
}
