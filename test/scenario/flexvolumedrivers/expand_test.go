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

func claimGrows(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "expand.example.com/loop")
	c.Apply(d.large("grow"))
	c.WaitPodRunning("grow")

	d.block("expandvolume", "end")
	grow(c, "grow", "400Mi")
	d.waitBlocked("expandvolume", "end")
	c.WaitFor("condition Resizing", func(ctx context.Context) error { return hasCondition(ctx, c, corev1.PersistentVolumeClaimResizing) })
	d.unblock("expandvolume", "end")
	waitCapacity(c, "grow", "400Mi")

	for _, op := range []string{"expandvolume", "expandfs"} {
		if n := d.count(op); n != 1 {
			t.Errorf("%s was called %d times, want once", op, n)
		}
	}
	if size := c.OC("get", "persistentvolume", "grow-"+c.Namespace, "-o", "jsonpath={.spec.capacity.storage}"); size != "400Mi" {
		t.Errorf("the volume has %s", size)
	}
	if info, err := os.Stat(filepath.Join(d.dir, "grow.img")); err != nil || info.Size() != 400<<20 {
		t.Errorf("the image: %v, error %v", info, err)
	}
	if blocks := c.Exec("grow", "stat", "-f", "-c", "%b %S", "/data"); !atLeast(blocks, 330<<20) {
		t.Errorf("the pod sees a file system of %s (blocks, bytes each)", blocks)
	}
	c.WaitFor("event of the node", func(ctx context.Context) error { return hasEvent(ctx, c, "FileSystemResizeSuccessful", "") })
	c.WaitFor("end of the expansion", func(ctx context.Context) error {
		for _, condition := range []corev1.PersistentVolumeClaimConditionType{
			corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
		} {
			if hasCondition(ctx, c, condition) == nil {
				return fmt.Errorf("there is %s", condition)
			}
		}
		left := c.OC("get", "persistentvolume", "grow-"+c.Namespace, "-o", "jsonpath={.metadata.annotations}")
		if strings.Contains(left, "pre-resize-capacity") {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
	checkMetrics(t, c, d)
	d.remove("grow")
}

func failedExpansion(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "expandfail.example.com/loop", `truncate -s "$3"`, "false")
	c.Apply(d.large("stuck"))
	c.WaitPodRunning("stuck")
	grow(c, "stuck", "400Mi")
	c.WaitFor("event of the failure", func(ctx context.Context) error { return hasEvent(ctx, c, "VolumeResizeFailed", "cannot extend") })
	d.update()
	waitCapacity(c, "stuck", "400Mi")
	d.remove("stuck")
}

// grow asks for a claim of another size.
func grow(c *kit.Cluster, claim, size string) {
	c.OC("patch", "persistentvolumeclaim", claim, "--patch", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
}

// waitCapacity waits until a claim, and the file system of the pod of the same name, has a size.
func waitCapacity(c *kit.Cluster, claim, size string) {
	pokeUntil(c, claim, func() bool {
		return c.OC("get", "persistentvolumeclaim", claim, "-o", "jsonpath={.status.capacity.storage}") == size
	})
}

// pokeUntil changes a pod until something holds: kubelet looks whether a volume has grown when it looks at the pod anyway, and it does that once a
// minute without a reason.
func pokeUntil(c *kit.Cluster, pod string, holds func() bool) {
	poke := 0
	c.WaitFor("growth of the volume of pod "+pod, func(context.Context) error {
		if holds() {
			return nil
		}
		poke++
		_, err := c.TryOC("annotate", "pod", pod, "--overwrite", fmt.Sprintf("poke=%d", poke))
		if err == nil {
			status := c.OC("get", "persistentvolumeclaim", pod, "-o", "jsonpath={.status}")
			err = fmt.Errorf("claim's status %s", status)
		}
		return err
	})
}

func hasCondition(ctx context.Context, c *kit.Cluster, wanted corev1.PersistentVolumeClaimConditionType) error {
	claims, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, claim := range claims.Items {
		for _, condition := range claim.Status.Conditions {
			if condition.Type == wanted {
				return nil
			}
		}
	}
	return fmt.Errorf("none of %d claims has it", len(claims.Items))
}

// hasEvent looks for an event of the test's namespace by its reason and a part of its message.
func hasEvent(ctx context.Context, c *kit.Cluster, reason, message string) error {
	events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var seen []string
	for _, event := range events.Items {
		if event.Reason == reason && strings.Contains(event.Message, message) {
			return nil
		}
		seen = append(seen, event.Reason+": "+event.Message)
	}
	return fmt.Errorf("there are %q", seen)
}

// atLeast says whether "<blocks> <bytes each>" are so many bytes.
func atLeast(blocks string, bytes int) bool {
	var number, size int
	_, err := fmt.Sscan(blocks, &number, &size)
	return err == nil && number*size >= bytes
}

// checkMetrics looks for the driver in the metrics of both processes, and for its volume in kubelet's.
func checkMetrics(t *testing.T, c *kit.Cluster, d *driver) {
	t.Helper()
	node := c.Pod("grow").Spec.NodeName
	const controlPlane = "/metrics"
	kubelet := "/api/v1/nodes/" + node + "/proxy/metrics"
	for _, look := range []struct{ path, want string }{
		{controlPlane, fmt.Sprintf("slipway_flexvolume_operation_seconds_count{driver=%q,operation=\"attach\",status=\"success\"} 1", d.name)},
		{controlPlane, "slipway_flexvolume_scans_total{status=\"success\"}"},
		{kubelet, fmt.Sprintf("slipway_flexvolume_operation_seconds_count{driver=%q,operation=\"mountdevice\",status=\"success\"} 1", d.name)},
		{kubelet, fmt.Sprintf("slipway_flexvolume_operations_in_flight{driver=%q,operation=\"mount\"} 0", d.name)},
	} {
		if page := c.OC("get", "--raw", look.path); !strings.Contains(page, look.want) {
			t.Errorf("%s does not have %s", look.path, look.want)
		}
	}
	c.WaitFor("size of the volume in kubelet's metrics", func(context.Context) error {
		want := fmt.Sprintf("kubelet_volume_stats_capacity_bytes{namespace=%q,persistentvolumeclaim=\"grow\"}", c.Namespace)
		if page := c.OC("get", "--raw", kubelet); !strings.Contains(page, want) {
			return fmt.Errorf("no %s", want)
		}
		return nil
	})
}
