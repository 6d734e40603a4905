package csi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// rates measures the rates at which the program attaches and detaches volumes. If provisions is
// set, the program also provisions and deletes the volumes. Otherwise, the benchmark creates the
// volumes. usage is the program's resource usage after it has been idle.
func (p program) rates(ctx context.Context, provisions bool, idle time.Duration) (r throughput, usage host.Usage, err error) {
	c, err := p.start(ctx, 1, 0)
	if err != nil {
		return r, usage, err
	}
	defer c.stop()
	if err := c.warmUp(ctx); err != nil {
		return r, usage, err
	}
	// Create some volumes before the measurement, because a process does additional work for its
	// first volumes.
	if _, err := c.lives(ctx, "warm", warmUpCount, provisions); err != nil {
		return r, usage, err
	}
	if r, err = c.lives(ctx, "new", volumeCount, provisions); err != nil {
		return r, usage, err
	}
	if idle > 0 {
		usage, err = c.idle(ctx, idle)
	}
	return r, usage, err
}

// lives takes volumes through their whole life cycle and measures each step.
func (c *cluster) lives(ctx context.Context, prefix string, count int, provisions bool) (r throughput, err error) {
	born := c.requests()
	var volumes []string
	if provisions {
		volumes, r.provision, err = c.provision(ctx, prefix, count)
	} else {
		for i := range count {
			volumes = append(volumes, fmt.Sprintf("%s-%d", prefix, i))
		}
		err = host.Each(ctx, count, func(i int) error { _, err := c.newVolume(ctx, volumes[i], 0); return err })
	}
	if err != nil {
		return r, err
	}
	if err := c.attachAndDetach(ctx, volumes, &r); err != nil || !provisions {
		return r, err
	}
	if err := c.release(ctx, volumes); err != nil {
		return r, err
	}
	r.life = float64(c.requests()-born) / float64(count)
	return r, nil
}

func (c *cluster) attachAndDetach(ctx context.Context, volumes []string, r *throughput) error {
	requests, process := c.requests(), host.Process{PID: c.process.Process.Pid}
	before, err := process.Usage()
	if err != nil {
		return err
	}
	if r.attach, err = c.attach(ctx, volumes); err != nil {
		return err
	}
	if r.detach, err = c.detach(ctx, volumes); err != nil {
		return err
	}
	after, err := process.Usage()
	count := float64(len(volumes))
	r.requests, r.processor = float64(c.requests()-requests)/count, (after.Seconds-before.Seconds)/count
	return err
}

// memory returns the resource usage of an idle program that serves drivers with manyVolumes
// volumes.
func (p program) memory(ctx context.Context, drivers int) (host.Usage, error) {
	c, err := p.start(ctx, drivers, manyVolumes)
	if err != nil {
		return host.Usage{}, err
	}
	defer c.stop()
	if err := c.warmUp(ctx); err != nil {
		return host.Usage{}, err
	}
	return c.idle(ctx, idleTime)
}

func (c *cluster) idle(ctx context.Context, long time.Duration) (host.Usage, error) {
	if err := host.Pause(ctx, long); err != nil {
		return host.Usage{}, err
	}
	return host.Process{PID: c.process.Process.Pid}.Usage()
}

// newVolume creates a volume in a driver's storage, and its PersistentVolume.
func (c *cluster) newVolume(ctx context.Context, name string, driver int) (handle string, err error) {
	response, err := c.drivers[driver].CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}})
	if err != nil {
		return "", err
	}
	handle = response.GetVolume().GetVolumeId()
	return handle, c.makeVolume(ctx, name, driverName(driver), handle)
}

// firstVolume is the volume that warmUp attaches to detect when the measured program is ready.
const firstVolume = "first"

// warmUp waits until the program is ready.
func (c *cluster) warmUp(ctx context.Context) error {
	before := c.drivers[0].Attachments()
	if _, err := c.newVolume(ctx, firstVolume, 0); err != nil {
		return err
	}
	if _, err := c.client.StorageV1().VolumeAttachments().Create(ctx, attachment(firstVolume, driverName(0)), metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.until(ctx, "the program attaches", func() bool { return c.drivers[0].Attachments() == before+1 })
}

// requests counts the program's requests. It excludes the benchmark's requests, lists, watches, and
// events.
func (c *cluster) requests() (sum int) {
	for request, count := range c.api.Requests() {
		verb, kind, _ := strings.Cut(request, " ")
		switch {
		case kind == "events", request == releases:
		case verb == "patch", verb == "update", verb == "get", request == "delete persistentvolumes", request == "create persistentvolumes":
			sum += count
		}
	}
	return sum
}

// releases is the request that the benchmark sends to release a volume from its claim.
const releases = "update persistentvolumes/status"

func (c *cluster) attach(ctx context.Context, volumes []string) (float64, error) {
	start := time.Now()
	err := host.Each(ctx, len(volumes), func(i int) error {
		_, err := c.client.StorageV1().VolumeAttachments().Create(ctx, attachment(volumes[i], driverName(0)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, err
	}
	err = c.until(ctx, "all volumes are attached", func() bool {
		return c.api.Count("volumeattachments", func(va *unstructured.Unstructured) bool {
			attached, _, _ := unstructured.NestedBool(va.Object, "status", "attached")
			return attached
		}) == len(volumes)+1
	})
	return float64(len(volumes)) / time.Since(start).Seconds(), err
}

func (c *cluster) detach(ctx context.Context, volumes []string) (float64, error) {
	start := time.Now()
	err := host.Each(ctx, len(volumes), func(i int) error {
		return c.client.StorageV1().VolumeAttachments().Delete(ctx, volumes[i], metav1.DeleteOptions{})
	})
	if err != nil {
		return 0, err
	}
	err = c.until(ctx, "all volumes are detached", func() bool { return c.api.Count("volumeattachments", nil) == 1 })
	return float64(len(volumes)) / time.Since(start).Seconds(), err
}

// provision creates claims for the driver, with the annotations that the volume binder sets, and
// waits for the claims' PersistentVolumes.
func (c *cluster) provision(ctx context.Context, prefix string, count int) (volumes []string, rate float64, err error) {
	class := "fast"
	volumes = make([]string, count)
	there := c.api.Count("persistentvolumes", nil)
	start := time.Now()
	err = host.Each(ctx, count, func(i int) error {
		claim, err := c.client.CoreV1().PersistentVolumeClaims("default").Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", prefix, i), Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": driverName(0)},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}, metav1.CreateOptions{})
		if err == nil {
			volumes[i] = "pvc-" + string(claim.UID)
		}
		return err
	})
	if err == nil {
		err = c.until(ctx, "all volumes are created", func() bool { return c.api.Count("persistentvolumes", nil) == there+count })
	}
	rate = float64(count) / time.Since(start).Seconds()
	if err == nil {
		err = c.until(ctx, "all claims have lost their finalizer", func() bool {
			return c.api.Count("persistentvolumeclaims", func(claim *unstructured.Unstructured) bool { return len(claim.GetFinalizers()) > 0 }) == 0
		})
	}
	return volumes, rate, err
}

// release marks provisioned volumes as released, as the volume binder does, and waits until the
// program has deleted them.
func (c *cluster) release(ctx context.Context, volumes []string) error {
	list, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = host.Each(ctx, len(list.Items), func(i int) error {
		pv := &list.Items[i]
		if !slices.Contains(volumes, pv.Name) {
			return nil
		}
		pv.Status.Phase, pv.ResourceVersion = corev1.VolumeReleased, ""
		_, err := c.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "all volumes are deleted", func() bool { return c.api.Count("persistentvolumes", nil) == len(list.Items)-len(volumes) })
}
