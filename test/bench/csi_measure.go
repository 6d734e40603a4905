package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rates lets the program provision, if it can, attach and detach volumes.
func (p csiProgram) rates(ctx context.Context, provisions bool) (r csiRates, err error) {
	c, err := p.start(ctx, 1, 0)
	if err != nil {
		return r, err
	}
	defer c.stop()
	if err := c.warmUp(ctx); err != nil {
		return r, err
	}
	if provisions {
		if r.provision, err = c.provision(ctx); err != nil {
			return r, err
		}
	}
	if err := each(ctx, csiVolumes, func(i int) error { return c.newVolume(ctx, fmt.Sprintf("new-%d", i)) }); err != nil {
		return r, err
	}
	before := c.requests()
	if r.attach, err = c.attach(ctx); err != nil {
		return r, err
	}
	if r.detach, err = c.detach(ctx); err != nil {
		return r, err
	}
	r.requests = float64(c.requests()-before) / csiVolumes
	r.idle, err = c.idle(ctx)
	return r, err
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
	return c.idle(ctx)
}

func (c *csiCluster) idle(ctx context.Context) (usage, error) {
	if err := pause(ctx, csiIdle); err != nil {
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

// warmUp waits until the program serves.
func (c *csiCluster) warmUp(ctx context.Context) error {
	if err := c.newVolume(ctx, "first"); err != nil {
		return err
	}
	if _, err := c.client.StorageV1().VolumeAttachments().Create(ctx, attachment("first", driverName(0)), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := until(ctx, "the program attaches", func() (bool, error) { return c.drivers[0].Attachments() == 1, nil })
	return err
}

// requests counts what only the program asks: everything but what makes the objects, lists and watches, and events.
func (c *csiCluster) requests() (sum int) {
	for request, count := range c.api.Requests() {
		verb, kind, _ := strings.Cut(request, " ")
		if kind != "events" && (verb == "patch" || verb == "update" || verb == "get") {
			sum += count
		}
	}
	return sum
}

func (c *csiCluster) attach(ctx context.Context) (float64, error) {
	began := time.Now()
	err := each(ctx, csiVolumes, func(i int) error {
		_, err := c.client.StorageV1().VolumeAttachments().Create(ctx, attachment(fmt.Sprintf("new-%d", i), driverName(0)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return 0, err
	}
	_, err = until(ctx, "all volumes are attached", func() (bool, error) {
		list, err := c.client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		attached := 0
		for _, va := range list.Items {
			if va.Status.Attached {
				attached++
			}
		}
		return attached == csiVolumes+1, nil
	})
	return csiVolumes / time.Since(began).Seconds(), err
}

func (c *csiCluster) detach(ctx context.Context) (float64, error) {
	began := time.Now()
	err := each(ctx, csiVolumes, func(i int) error {
		return c.client.StorageV1().VolumeAttachments().Delete(ctx, fmt.Sprintf("new-%d", i), metav1.DeleteOptions{})
	})
	if err != nil {
		return 0, err
	}
	_, err = until(ctx, "all volumes are detached", func() (bool, error) {
		list, err := c.client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 1, err
	})
	return csiVolumes / time.Since(began).Seconds(), err
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
	_, err = until(ctx, "all volumes are made", func() (bool, error) {
		list, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == csiVolumes+1, err
	})
	return csiVolumes / time.Since(began).Seconds(), err
}
