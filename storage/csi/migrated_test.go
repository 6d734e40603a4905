package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// The driver that replaces the in-tree AWS EBS plugin serves a StorageClass, a claim and a
// PersistentVolume of the in-tree plugin.
func TestInTreeVolumesAreMigrated(t *testing.T) {
	const inTree, driver = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
	c := newCluster(t, fake.Options{Name: driver})
	class := c.class("old")
	class.Provisioner, class.Parameters = inTree, map[string]string{"type": "gp2", "fsType": "xfs"}
	c.create(class)
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &class.Name
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": inTree, "pv.kubernetes.io/migrated-to": driver}
	c.create(claim)
	pv := c.waitBound("data")
	if disk := pv.Spec.AWSElasticBlockStore; disk == nil || disk.FSType != "xfs" || pv.Annotations["pv.kubernetes.io/provisioned-by"] != inTree {
		t.Errorf("PersistentVolume %+v of %v", pv.Spec, pv.Annotations)
	}
	if got := c.lastCreate(); got.Parameters["type"] != "gp2" || got.VolumeCapabilities[0].GetMount().GetFsType() != "xfs" {
		t.Errorf("the driver's request is %v", got)
	}

	c.create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "node"}},
	}})
	va := c.attachment("va", pv.Name, "node-2")
	va.Spec.Attacher = driver
	c.create(va)
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached && c.driver.Attachments() == 1 })
	if got := c.driver.Calls("ControllerPublishVolume")[0].Request.(*csi.ControllerPublishVolumeRequest).VolumeId; got != c.driver.Volumes()[pv.Name].ID {
		t.Errorf("attached %q", got)
	}
	c.grow("data", "2Gi")
	eventually.True(t, "the volume is expanded", func() bool {
		return c.driver.Volumes()[pv.Name].Size == 2<<30 && c.getPV(pv.Name).Spec.Capacity.Storage().Cmp(resource.MustParse("2Gi")) == 0
	})
	c.detach("va")
	eventually.True(t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	c.deleteClaim("data")
	eventually.True(t, "the volume is deleted", func() bool { return c.getPV(pv.Name) == nil && len(c.driver.Volumes()) == 0 })
}

// grow records the current capacity in the claim's status, as the volume binder would. Then it
// requests a larger volume, as the claim's user would.
func (c *cluster) grow(name, size string) {
	c.t.Helper()
	b := binder{client: c.client}
	claim := c.getClaim(name)
	has := patch{"capacity": patch{string(corev1.ResourceStorage): claim.Spec.Resources.Requests.Storage().String()}}
	if err := b.patchClaim(c.t.Context(), claim, patch{"status": has}, "status"); err != nil {
		c.t.Fatal(err)
	}
	change := patch{"spec": patch{"resources": patch{"requests": patch{string(corev1.ResourceStorage): size}}}}
	if err := b.patchClaim(c.t.Context(), claim, change); err != nil {
		c.t.Fatal(err)
	}
}
