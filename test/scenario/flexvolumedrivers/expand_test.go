package flexvolumedrivers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/kit"
)

// largeSize is the size that claims for large volumes grow to. A file system of this size has at
// least grownBytes of space for files.
const (
	largeSize  = "400Mi"
	grownBytes = 330 << 20
)

func TestClaimIsExpanded(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "expand.example.com/disk")
	d.claim("grow", large)
	d.pod("grow", nil)
	d.waitRunning("grow")

	d.hold("expandvolume", "end", "grow")
	grow(c, "grow")
	d.waitHeld("expandvolume", "end", "grow")
	c.WaitFor("condition Resizing", func(ctx context.Context) error {
		if claim := readClaim(ctx, c, "grow"); !has(claim, corev1.PersistentVolumeClaimResizing) {
			return fmt.Errorf("status %+v", claim.Status)
		}
		return nil
	})
	d.release("expandvolume", "end", "grow")
	waitGrown(d, "grow")

	d.wasCalled("expandvolume", "grow", 1)
	d.wasCalled("expandfs", "grow", 1)
	if size := c.OC("get", "persistentvolume", d.volume("grow"), "-o", "jsonpath={.spec.capacity.storage}"); size != largeSize {
		t.Errorf("the volume has %s", size)
	}
	if info, err := os.Stat(filepath.Join(d.dir, d.volume("grow")+".img")); err != nil || info.Size() != 400<<20 {
		t.Errorf("the image: %v, error %v", info, err)
	}
	waitEvent(c, "FileSystemResizeSuccessful", "")
	c.WaitFor("end of the expansion", func(ctx context.Context) error {
		claim := readClaim(ctx, c, "grow")
		if has(claim, corev1.PersistentVolumeClaimResizing) || has(claim, corev1.PersistentVolumeClaimFileSystemResizePending) {
			return fmt.Errorf("status %+v", claim.Status)
		}
		pv, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, d.volume("grow"), metav1.GetOptions{})
		if err == nil && len(pv.Annotations) > 0 {
			for name := range pv.Annotations {
				if strings.Contains(name, "pre-resize-capacity") {
					err = errors.New("the volume still has annotation " + name)
				}
			}
		}
		return err
	})
	checkMetrics(t, c, d)
	d.remove("grow")
}

func TestFailedExpansionIsRetried(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "expandfail.example.com/disk", `truncate -s "$3"`, "false")
	d.claim("stuck", large)
	d.pod("stuck", nil)
	d.waitRunning("stuck")
	grow(c, "stuck")
	waitEvent(c, "VolumeResizeFailed", "cannot extend")
	d.update()
	waitGrown(d, "stuck")
	d.remove("stuck")
}

// grow requests a larger size for a claim.
func grow(c *kit.Cluster, claim string) {
	c.WaitFor("growth of claim "+claim, func(ctx context.Context) error {
		patch := []byte(`{"spec":{"resources":{"requests":{"storage":"` + largeSize + `"}}}}`)
		_, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Patch(ctx, claim, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// waitGrown waits until both a claim and the file system in the pod of the same name have grown to
// the new size.
func waitGrown(d *driver, claim string) {
	pokeUntil(d.c, claim, func() error {
		if size := readClaim(context.Background(), d.c, claim).Status.Capacity.Storage().String(); size != largeSize {
			return fmt.Errorf("the claim has %s", size)
		}
		return nil
	})
	var blocks, size int
	if _, err := fmt.Sscan(d.c.Exec(claim, "stat", "-f", "-c", "%b %S", "/data"), &blocks, &size); err != nil || blocks*size < grownBytes {
		d.t.Errorf("pod %s sees a file system of %d blocks of %d bytes, error %v", claim, blocks, size, err)
	}
}

// pokeUntil repeatedly changes a pod until condition returns nil. The kubelet checks whether a
// volume has grown when it syncs the pod, which happens only once per minute if the pod does not
// change.
func pokeUntil(c *kit.Cluster, pod string, condition func() error) {
	poke := 0
	c.WaitFor("growth of the volume of pod "+pod, func(ctx context.Context) error {
		err := condition()
		if err == nil {
			return nil
		}
		poke++
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"poke":"%d"}}}`, poke)
		_, patchErr := c.Client.CoreV1().Pods(c.Namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
		return errors.Join(err, patchErr)
	})
}

func readClaim(ctx context.Context, c *kit.Cluster, name string) *corev1.PersistentVolumeClaim {
	claim, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return &corev1.PersistentVolumeClaim{}
	}
	return claim
}

func has(claim *corev1.PersistentVolumeClaim, conditionType corev1.PersistentVolumeClaimConditionType) bool {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == conditionType {
			return true
		}
	}
	return false
}

// checkMetrics checks that the control plane and the node export metrics for the driver, and that
// the kubelet also exports metrics for the driver's volume.
func checkMetrics(t *testing.T, c *kit.Cluster, d *driver) {
	t.Helper()
	const controlPlane = "/metrics"
	kubelet := "/api/v1/nodes/" + c.Pod("grow").Spec.NodeName + "/proxy/metrics"
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
	c.WaitFor("size of the volume in the kubelet's metrics", func(context.Context) error {
		want := fmt.Sprintf("kubelet_volume_stats_capacity_bytes{namespace=%q,persistentvolumeclaim=\"grow\"}", c.Namespace)
		if page := c.OC("get", "--raw", kubelet); !strings.Contains(page, want) {
			return fmt.Errorf("no %s", want)
		}
		return nil
	})
}
