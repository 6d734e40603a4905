//go:build flexvolumedrivers

package flexvolumedrivers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// caller makes the driver note which process has called it: in caller.<operation>, its command line.
const caller = `tr '\0' ' ' </proc/$PPID/cmdline >"$dir/caller.$operation"; wait_at begin`

// TestNodeAttachesWhereTheControllerIsToldNotTo does not restart the node: a volume that was attached before, upstream's kubelet unmounts then but
// detaches no more, because it looks for what is attached in the status that the controller writes.
func TestNodeAttachesWhereTheControllerIsToldNotTo(t *testing.T) {
	c := kit.Start(t, kit.Options{Node: "kubeletArguments: {enable-controller-attach-detach: ['false']}"})
	d := install(t, c, "node.example.com/loop", "wait_at begin", caller)
	c.Apply(class)
	c.Apply(d.volume("local"))
	c.WaitPodRunning("local")
	d.remove("local")
	for _, op := range []string{"attach", "detach"} {
		if n := d.count(op); n != 1 {
			t.Errorf("%s was called %d times", op, n)
		}
		by, err := os.ReadFile(filepath.Join(d.dir, "caller."+op))
		if err != nil || !strings.Contains(string(by), "slipway node") {
			t.Errorf("%s was called by %q, error %v", op, by, err)
		}
	}
}

// goneNode attaches a volume to a machine that then fails for good: a Node object without a machine stands for it.
func goneNode(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "gone.example.com/loop")
	ctx := context.Background()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "ghost", Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
	}}
	node, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.OC("delete", "node", "ghost", "--ignore-not-found") })
	c.Apply(strings.Replace(d.volume("moves"), "spec:\n  terminationGracePeriodSeconds: 0\n",
		"spec:\n  terminationGracePeriodSeconds: 0\n  nodeName: ghost\n  tolerations: [{operator: Exists}]\n", 1))
	holder := func() string {
		content, _ := os.ReadFile(filepath.Join(d.dir, "attached.moves")) // none: not attached
		return strings.TrimSpace(string(content))
	}
	c.WaitFor("attachment to the ghost", func(context.Context) error { return isEqual(holder(), "ghost") })

	// The machine has mounted the volume, fails, and is declared out of service; its pod goes without anyone's confirmation.
	unique := corev1.UniqueVolumeName(d.name + "/moves")
	c.WaitFor("status of the ghost", func(ctx context.Context) error {
		if node, err = c.Client.CoreV1().Nodes().Get(ctx, "ghost", metav1.GetOptions{}); err != nil {
			return err
		}
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{unique}
		if node, err = c.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute,
		})
		_, err = c.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	c.OC("delete", "pod", "moves", "--force", "--grace-period=0")
	c.WaitFor("detachment from the ghost", func(context.Context) error { return isEqual(holder(), "") })

	c.Apply(d.pod("moves"))
	c.WaitPodRunning("moves")
	if holder() == "ghost" {
		t.Error("the volume is attached to the node that is gone")
	}
	d.remove("moves")
}

func isEqual(got, want string) error {
	if got != want {
		return fmt.Errorf("it is %q, not %q", got, want)
	}
	return nil
}
