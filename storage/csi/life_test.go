package csi

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

const attachFinalizer = "external-attacher/fake-csi-slipway-io"

func TestVolumeLifecycle(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.create(c.claim("data"))
	pv := c.waitBound("data")
	if pv.Spec.CSI.Driver != fake.Name || pv.Spec.CSI.VolumeHandle == "" || pv.Spec.StorageClassName != "fast" || pv.Spec.Capacity.Storage().String() != "1Gi" {
		t.Errorf("PersistentVolume %+v", pv.Spec)
	}
	if got := c.driver.Volumes()[pv.Name].Parameters["type"]; got != "ssd" {
		t.Errorf("the class's parameter reached the driver as %q", got)
	}
	eventually.True(t, "the pending finalizer of the claim is removed", func() bool { return len(c.getClaim("data").Finalizers) == 0 })

	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	va := c.getVA("va")
	if !slices.Contains(va.Finalizers, attachFinalizer) || va.Annotations["csi.alpha.kubernetes.io/node-id"] != "node" || va.Status.AttachError != nil {
		t.Errorf("VolumeAttachment %+v", va)
	}
	if !slices.Contains(c.getPV(pv.Name).Finalizers, attachFinalizer) || c.driver.Attachments() != 1 {
		t.Errorf("PersistentVolume has the finalizers %q, the driver %d attachments", c.getPV(pv.Name).Finalizers, c.driver.Attachments())
	}

	c.detach("va")
	eventually.True(t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	if n := c.driver.Attachments(); n != 0 {
		t.Errorf("the driver has %d attachments", n)
	}
	c.deleteClaim("data")
	eventually.True(t, "the PersistentVolume is deleted", func() bool { return c.getPV(pv.Name) == nil })
	if n := len(c.driver.Volumes()); n != 0 {
		t.Errorf("the driver has %d volumes", n)
	}
}

func TestAttachAndDetachNeedThreeRequests(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.create(c.claim("data"))
	pv := c.waitBound("data")
	eventually.True(t, "the pending finalizer of the claim is removed", func() bool { return len(c.getClaim("data").Finalizers) == 0 })
	before := c.api.Requests()
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	c.detach("va")
	eventually.True(t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	after := c.api.Requests()
	sum := 0
	for _, request := range []string{"patch volumeattachments", "patch volumeattachments/status", "patch persistentvolumes", "update volumeattachments", "get persistentvolumes"} {
		sum += after[request] - before[request]
	}
	// External-attacher 4.13.0 sends six requests: it adds finalizers to the VolumeAttachment and
	// the PersistentVolume, updates the status twice, and removes both finalizers.
	if sum != 3 {
		t.Errorf("%d requests to attach and detach, want 3: before %v, after %v", sum, before, after)
	}
}

func TestRetainPolicyKeepsVolume(t *testing.T) {
	c := newCluster(t, fake.Options{})
	class := c.class("kept")
	retain := corev1.PersistentVolumeReclaimRetain
	class.ReclaimPolicy = &retain
	c.create(class)
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &class.Name
	c.create(claim)
	pv := c.waitBound("data")
	c.deleteClaim("data")
	eventually.True(t, "the PersistentVolume is released", func() bool { return c.getPV(pv.Name).Status.Phase == corev1.VolumeReleased })
	if len(c.driver.Volumes()) != 1 {
		t.Error("the driver lost the volume")
	}
	c.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	eventually.True(t, "the volume is deleted when the policy changes to Delete", func() bool { return c.getPV(pv.Name) == nil && len(c.driver.Volumes()) == 0 })
}
