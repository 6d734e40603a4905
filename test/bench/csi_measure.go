package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rates lets the program attach and detach volumes: those that it has provisioned, and will delete, or such as somebody else has made. Then it is left alone.
func (p csiProgram) rates(ctx context.Context, provisions bool, idle time.Duration) (r csiRates, left usage, err error) {
	c, err := p.start(ctx, 1, 0)
	if err != nil {
		return r, left, err
	}
	defer c.stop()
	if err := c.warmUp(ctx); err != nil {
		return r, left, err
	}
	born := c.requests()
	if provisions {
		r.provision, err = c.provision(ctx)
	} else {
		err = each(ctx, csiVolumes, func(i int) error { return c.newVolume(ctx, fmt.Sprintf("new-%d", i)) })
	}
	if err != nil {
		return r, left, err
	}
	if err := c.attachAndDetach(ctx, &r); err != nil {
		return r, left, err
	}
	if provisions {
		if err := c.release(ctx); err != nil {
			return r, left, err
		}
		r.life = float64(c.requests()-born) / csiVolumes
	}
	if idle > 0 {
		left, err = c.idle(ctx, idle)
	}
	return r, left, err
}

// attachAndDetach measures that for all volumes but the first, which stays attached.
func (c *csiCluster) attachAndDetach(ctx context.Context, r *csiRates) error {
	var volumes []string
	list, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pv := range list.Items {
		if pv.Name != firstVolume {
			volumes = append(volumes, pv.Name)
		}
	}
	if len(volumes) != csiVolumes {
		return fmt.Errorf("count volumes: %d, not %d", len(volumes), csiVolumes)
	}
	asked, own := c.requests(), process{pid: c.process.Process.Pid}
	before, err := own.usage()
	if err != nil {
		return err
	}
	if r.attach, err = c.attach(ctx, volumes); err != nil {
		return err
	}
	if r.detach, err = c.detach(ctx, volumes); err != nil {
		return err
	}
	after, err := own.usage()
	r.requests, r.processor = float64(c.requests()-asked)/csiVolumes, (after.Seconds-before.Seconds)/csiVolumes
	return err
}

// memory is what the program uses that serves drivers with many volumes.
func (p csiProgram) memory(ctx context.Context, drivers int) (usage, error) {
	c, err := p.start(ctx, drivers, csiMany)
	if err != nil {
		return usage{}, err
	}
	defer c.stop()
	if err := c.warmUp(ctx); err != nil {
		return usage{}, err
	}
	return c.idle(ctx, csiIdle)
}

func (c *csiCluster) idle(ctx context.Context, long time.Duration) (usage, error) {
	if err := pause(ctx, long); err != nil {
		return usage{}, err
	}
	return process{pid: c.process.Process.Pid}.usage()
}

// newVolume makes a volume in the storage and its PersistentVolume.
func (c *csiCluster) newVolume(ctx context.Context, name string) error {
	answer, err := c.drivers[0].CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}})
	if err != nil {
		return err
	}
	return c.makeVolume(ctx, name, driverName(0), answer.GetVolume().GetVolumeId())
}

// firstVolume is attached to learn when the program serves.
const firstVolume = "first"

// warmUp waits until the program serves.
func (c *csiCluster) warmUp(ctx context.Context) error {
	if err := c.newVolume(ctx, firstVolume); err != nil {
		return err
	}
	if _, err := c.client.StorageV1().VolumeAttachments().Create(ctx, attachment(firstVolume, driverName(0)), metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.until(ctx, "the program attaches", func() bool { return c.drivers[0].Attachments() == 1 })
}

// requests counts what only the program asks: everything but what the benchmark makes and releases, lists and watches, and events.
func (c *csiCluster) requests() (sum int) {
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

// releases is the request by which the benchmark says that a claim has released its volume.
const releases = "update persistentvolumes/status"

func (c *csiCluster) attach(ctx context.Context, volumes []string) (float64, error) {
	began := time.Now()
	err := each(ctx, len(volumes), func(i int) error {
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
	return float64(len(volumes)) / time.Since(began).Seconds(), err
}

func (c *csiCluster) detach(ctx context.Context, volumes []string) (float64, error) {
	began := time.Now()
	err := each(ctx, len(volumes), func(i int) error {
		return c.client.StorageV1().VolumeAttachments().Delete(ctx, volumes[i], metav1.DeleteOptions{})
	})
	if err != nil {
		return 0, err
	}
	err = c.until(ctx, "all volumes are detached", func() bool { return c.api.Count("volumeattachments", nil) == 1 })
	return float64(len(volumes)) / time.Since(began).Seconds(), err
}

// provision makes claims that the volume binder has given to the driver, and waits for their PersistentVolumes.
func (c *csiCluster) provision(ctx context.Context) (float64, error) {
	class := "fast"
	began := time.Now()
	err := each(ctx, csiVolumes, func(i int) error {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i), Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": driverName(0)}},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		_, err := c.client.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, err
	}
	err = c.until(ctx, "all volumes are made", func() bool { return c.api.Count("persistentvolumes", nil) == csiVolumes+1 })
	rate := csiVolumes / time.Since(began).Seconds()
	return rate, errors.Join(err, c.until(ctx, "all claims have heard of it", func() bool {
		return c.api.Count("persistentvolumeclaims", func(claim *unstructured.Unstructured) bool { return len(claim.GetFinalizers()) > 0 }) == 0
	}))
}

// release says of all provisioned volumes that their claims are gone, as the volume binder does, and waits until the program has deleted them.
func (c *csiCluster) release(ctx context.Context) error {
	list, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = each(ctx, len(list.Items), func(i int) error {
		pv := &list.Items[i]
		if pv.Name == firstVolume {
			return nil
		}
		pv.Status.Phase, pv.ResourceVersion = corev1.VolumeReleased, ""
		_, err := c.client.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return c.until(ctx, "all volumes are deleted", func() bool { return c.api.Count("persistentvolumes", nil) == 1 })
}
