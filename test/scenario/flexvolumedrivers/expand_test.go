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

func TestClaimGrowsWithItsDriver(t *testing.T) {
	c := kit.Shared(t)
	d := install(t, c, "expand.example.com/loop")
	c.Apply(class)
	c.Apply(d.large("grow"))
	c.WaitPodRunning("grow")

	d.block("expandvolume", "end")
	grow(c, "grow", "400Mi")
	d.waitBlocked("expandvolume", "end")
	c.WaitFor("condition Resizing", func(ctx context.Context) error { return hasCondition(ctx, c, corev1.PersistentVolumeClaimResizing) })
	d.unblock("expandvolume", "end")
	waitCapacity(c, "grow", "400Mi")

	if n := d.count("expandvolume"); n != 1 {
		t.Errorf("expandvolume was called %d times, want once", n)
	}
	if n := d.count("expandfs"); n != 1 {
		t.Errorf("expandfs was called %d times, want once", n)
	}
	if size := c.OC("get", "persistentvolume", "grow-"+c.Namespace, "-o", "jsonpath={.spec.capacity.storage}"); size != "400Mi" {
		t.Errorf("the volume has %s", size)
	}
	if info, err := os.Stat(filepath.Join(d.dir, "grow.img")); err != nil || info.Size() != 400<<20 {
		t.Errorf("the image: %v, error %v", info, err)
	}
	if blocks := c.Exec("grow", "stat", "-f", "-c", "%b %S", "/data"); !atLeast(blocks, 330<<20) {
		t.Errorf("the pod sees a file system of %s blocks and bytes each", blocks)
	}
	c.WaitFor("event of the node", func(ctx context.Context) error { return hasEvent(ctx, c, "FileSystemResizeSuccessful") })
	c.WaitFor("end of conditions", func(ctx context.Context) error {
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

func TestExpansionThatFailsIsTriedAgainAndShown(t *testing.T) {
	c := kit.Shared(t)
	d := install(t, c, "expandfail.example.com/loop", `truncate -s "$3"`, "false")
	c.Apply(class)
	c.Apply(d.large("stuck"))
	c.WaitPodRunning("stuck")
	grow(c, "stuck", "400Mi")
	c.WaitFor("event VolumeResizeFailed", func(ctx context.Context) error { return hasEvent(ctx, c, "VolumeResizeFailed") })
	d.update()
	waitCapacity(c, "stuck", "400Mi")
	d.remove("stuck")
}

func TestExpansionSurvivesTheControlPlane(t *testing.T) {
	c := kit.Shared(t)
	d := install(t, c, "expandkill.example.com/loop")
	c.Apply(class)
	c.Apply(d.large("killed"))
	c.WaitPodRunning("killed")
	size := 360
	for _, where := range []string{"begin", "end"} {
		d.block("expandvolume", where)
		grow(c, "killed", fmt.Sprintf("%dMi", size))
		d.waitBlocked("expandvolume", where)
		c.Kill("control-plane")
		d.unblock("expandvolume", where)
		waitReady(c)
		waitCapacity(c, "killed", fmt.Sprintf("%dMi", size))
		size += 40
	}
	d.remove("killed")
}

// grow asks for a claim of another size.
func grow(c *kit.Cluster, claim, size string) {
	c.OC("patch", "persistentvolumeclaim", claim, "--patch", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
}

func waitCapacity(c *kit.Cluster, claim, size string) {
	c.WaitFor("capacity "+size+" of claim "+claim, func(ctx context.Context) error {
		object, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := object.Status.Capacity.Storage().String(); got != size {
			return fmt.Errorf("it is %s: %+v", got, object.Status)
		}
		return nil
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

func hasEvent(ctx context.Context, c *kit.Cluster, reason string) error {
	events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var seen []string
	for _, event := range events.Items {
		if event.Reason == reason {
			return nil
		}
		seen = append(seen, event.Reason)
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
	node := c.OC("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	for _, look := range []struct{ path, want string }{
		{"/metrics", fmt.Sprintf("slipway_flexvolume_operation_seconds_count{driver=%q,operation=\"attach\",status=\"success\"} 1", d.name)},
		{"/metrics", "slipway_flexvolume_scans_total{status=\"success\"}"},
		{"/api/v1/nodes/" + node + "/proxy/metrics", fmt.Sprintf("slipway_flexvolume_operation_seconds_count{driver=%q,operation=\"mountdevice\",status=\"success\"} 1", d.name)},
		{"/api/v1/nodes/" + node + "/proxy/metrics", fmt.Sprintf("slipway_flexvolume_operations_in_flight{driver=%q,operation=\"mount\"} 0", d.name)},
	} {
		if page := c.OC("get", "--raw", look.path); !strings.Contains(page, look.want) {
			t.Errorf("%s does not have %s", look.path, look.want)
		}
	}
	c.WaitFor("size of the volume in kubelet's metrics", func(context.Context) error {
		want := fmt.Sprintf("kubelet_volume_stats_capacity_bytes{namespace=%q,persistentvolumeclaim=\"grow\"}", c.Namespace)
		page := c.OC("get", "--raw", "/api/v1/nodes/"+node+"/proxy/metrics")
		if !strings.Contains(page, want) {
			return fmt.Errorf("no %s", want)
		}
		return nil
	})
}

// waitReady waits until every part of the host is ready again.
func waitReady(c *kit.Cluster) {
	c.WaitFor("readiness after a restart", func(context.Context) error {
		if status := c.Status(); !status.Ready {
			return fmt.Errorf("%+v", status.Processes)
		}
		return nil
	})
}
