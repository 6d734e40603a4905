package masters

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// restoreMasters loses the last master, and restores three masters on machines with different
// addresses. One master is restored from an archive, which contains all objects. The other masters
// join from new machines. The node finds the masters through the load balancer, which has the
// masters' public address. Finally, a master and the node leave.
func restoreMasters(t *testing.T, w *writers, lb *balancer, first, node *kit.Cluster) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "first.tar.gz")
	first.MustSlipway("backup", archive)
	first.KillEverything()
	first.MustSlipway("down", "--purge")
	former := first.Address
	if err := first.Move(first.NextAddress()); err != nil {
		t.Fatal(err)
	}
	if first.Address == former {
		t.Fatalf("the restored master has the former address %s", former)
	}
	first.MustSlipway("restore", archive)
	first.Up()
	second, third := first.JoinMaster("second", kit.Options{}), first.JoinMaster("third", kit.Options{})
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
	for name, master := range map[string]*kit.Cluster{"first": first, "second": second, "third": third} {
		w.checkMaster(t, name, master)
	}
	waitControllers(third, "after-restore")
	waitApplication(node)
	// Remove these hosts now. At the end of the test, the masters stop before the node, and the
	// node cannot leave without a master.
	for _, host := range []*kit.Cluster{third, node} {
		host.MustSlipway("leave")
	}
	waitMembers(first, 2, "voter")
}
