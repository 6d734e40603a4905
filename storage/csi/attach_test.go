package csi

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// volume provisions a volume for a new claim and returns the volume's PersistentVolume.
func (c *cluster) volume(name string) *corev1.PersistentVolume {
	c.t.Helper()
	c.create(c.claim(name))
	return c.waitBound(name)
}

func TestAttachAndDetachErrorsAreReportedAndRetried(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	pv := c.volume("data")
	c.driver.SetPlan(fake.Always("ControllerPublishVolume", fake.Fault{Before: status.Error(codes.Internal, "no path to the disk")}))
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the error is reported", func() bool { return c.getVA("va").Status.AttachError != nil })
	va := c.getVA("va")
	if va.Status.Attached || !strings.Contains(va.Status.AttachError.Message, "no path to the disk") || va.Status.AttachError.Time.IsZero() {
		t.Errorf("status %+v", va.Status)
	}
	eventually.True(t, "an event is created", func() bool { return c.hasEvent("va", "FailedAttachVolume") })

	c.driver.SetPlan(nil)
	eventually.True(t, "the volume is attached after a retry", func() bool { return c.getVA("va").Status.Attached })
	if problem := c.getVA("va").Status.AttachError; problem != nil {
		t.Errorf("the error is still in the status: %v", problem)
	}

	c.driver.SetPlan(fake.Always("ControllerUnpublishVolume", fake.Fault{Before: status.Error(codes.Internal, "the disk is busy")}))
	c.detach("va")
	eventually.True(t, "the error is reported", func() bool { return c.getVA("va").Status.DetachError != nil })
	va = c.getVA("va")
	if !va.Status.Attached || !strings.Contains(va.Status.DetachError.Message, "the disk is busy") {
		t.Errorf("status %+v", va.Status)
	}
	eventually.True(t, "an event is created", func() bool { return c.hasEvent("va", "FailedDetachVolume") })
	c.driver.SetPlan(nil)
	eventually.True(t, "the volume is detached after a retry", func() bool { return c.getVA("va") == nil })
}

// The test transfers the lease to another instance, as if the first instance had been paused.
func TestFormerLeaderCallsNoDriver(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start(func(controller *Controller) {
		controller.Lease = &Lease{Namespace: "kube-system", Name: "csi", Identity: "first"}
	})
	pv := c.volume("data")
	leases := c.client.CoordinationV1().Leases("kube-system")
	eventually.True(t, "another instance holds the lease", func() bool {
		lease, err := leases.Get(t.Context(), "csi", metav1.GetOptions{})
		if err != nil {
			return false
		}
		lease.Spec.HolderIdentity = ptr.To("second")
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err == nil
	})
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the error is reported", func() bool { return c.getVA("va").Status.AttachError != nil })
	if message := c.getVA("va").Status.AttachError.Message; !strings.Contains(message, `"first" no longer holds the lease`) {
		t.Errorf("message %q", message)
	}
	if n := len(c.driver.Calls("ControllerPublishVolume")); n != 0 {
		t.Errorf("the driver was called %d times", n)
	}
}

func TestDriverWithoutPublishMarksVolumesAttached(t *testing.T) {
	c := newCluster(t, fake.Options{LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}})
	c.start()
	pv := c.volume("data")
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the attachment is marked", func() bool { return c.getVA("va").Status.Attached })
	if n := len(c.driver.Calls("ControllerPublishVolume")); n != 0 || len(c.getVA("va").Finalizers) != 0 {
		t.Errorf("%d calls, finalizers %q", n, c.getVA("va").Finalizers)
	}
	c.detach("va")
	eventually.True(t, "the attachment is deleted immediately", func() bool { return c.getVA("va") == nil })
}

func TestAttachmentsOfOtherDriversAreIgnored(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	pv := c.volume("data")
	other := c.attachment("other", pv.Name, "node-1")
	other.Spec.Attacher = "other.csi.example.org"
	c.create(other)
	c.create(c.attachment("own", pv.Name, "node-1"))
	eventually.True(t, "the driver's own attachment is attached", func() bool { return c.getVA("own").Status.Attached })
	if va := c.getVA("other"); va.Status.Attached || len(va.Finalizers) != 0 {
		t.Errorf("the other attachment is %+v", va)
	}
}

func TestOnlyWaitingAttachmentsAreAttached(t *testing.T) {
	// Disable verification. Otherwise, the verifier would attach the volume, because this test's
	// other attacher marks the volume as attached without calling the driver.
	c := newCluster(t, fake.Options{LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES}})
	first := c.start()
	pv := c.volume("data")
	first.Stop()
	deleted := c.attachment("deleted", pv.Name, "node-1")
	deleted.Finalizers = []string{"example.org/of-somebody"}
	c.create(deleted)
	c.detach("deleted")
	done := c.attachment("done", pv.Name, "node-1")
	c.create(done)
	c.patchAttached("done")
	c.create(c.attachment("waits", pv.Name, "node-1"))
	c.start()
	eventually.True(t, "the waiting attachment is attached", func() bool { return c.getVA("waits").Status.Attached })
	if n := len(c.driver.Calls("ControllerPublishVolume")); n != 1 || len(c.getVA("done").Finalizers) > 0 || len(c.getVA("deleted").Finalizers) > 1 {
		t.Errorf("ControllerPublishVolume was called %d times, want once", n)
	}
}

// patchAttached marks an attachment as attached, as another attacher would.
func (c *cluster) patchAttached(name string) {
	c.t.Helper()
	change := encode(patch{"status": patch{"attached": true}})
	if _, err := c.client.StorageV1().VolumeAttachments().Patch(c.t.Context(), name, types.MergePatchType, change, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

func TestAttachWaitsForNodeRegistration(t *testing.T) {
	c := newCluster(t, fake.Options{Nodes: []string{"id-2"}})
	c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}})
	c.start()
	pv := c.volume("data")
	c.create(c.attachment("va", pv.Name, "node-2"))
	eventually.True(t, "the error is reported", func() bool {
		problem := c.getVA("va").Status.AttachError
		return problem != nil && strings.Contains(problem.Message, "not registered there")
	})
	c.create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: fake.Name, NodeID: "id-2"}},
	}})
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
}

func TestNodeIDFromDeprecatedAnnotation(t *testing.T) {
	c := newCluster(t, fake.Options{Nodes: []string{"old-id"}})
	c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old", Annotations: map[string]string{"csi.volume.kubernetes.io/nodeid": `{"` + fake.Name + `":"old-id"}`}}})
	c.start()
	pv := c.volume("data")
	c.create(c.attachment("va", pv.Name, "old"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	if !nodesOf(c, pv.Name)["old-id"] {
		t.Errorf("attached to %v", nodesOf(c, pv.Name))
	}
}

func nodesOf(c *cluster, volume string) map[string]bool {
	nodes := map[string]bool{}
	for id := range c.driver.Volumes()[volume].Attached {
		nodes[id] = true
	}
	return nodes
}

func TestVolumeIsDetachedFromDeletedNode(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	pv := c.volume("data")
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	if err := c.client.StorageV1().CSINodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.detach("va")
	eventually.True(t, "the volume is detached", func() bool { return c.getVA("va") == nil && c.driver.Attachments() == 0 })
}

func TestVolumeDetachedByStorageIsReattached(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	pv := c.volume("data")
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	c.driver.Detach(pv.Spec.CSI.VolumeHandle, "node")
	eventually.True(t, "the volume is attached again", func() bool { return c.driver.Attachments() == 1 })
}

func TestPersistentVolumeFinalizerIsRemovedAfterDelay(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start(func(part *Controller) {
		part.Features = append(Features(Options{})[1:], attach.Feature(attach.Options{Retry: quick, FinalizerDelay: 10 * time.Millisecond}))
	})
	pv := c.volume("data")
	has := func() bool { return slices.Contains(c.getPV(pv.Name).Finalizers, attachFinalizer) }
	eventually.True(t, "a detached volume loses the finalizer", func() bool { return !has() })
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	if !has() {
		t.Error("the PersistentVolume is attached and has no finalizer")
	}
	c.detach("va")
	eventually.True(t, "the finalizer is removed again", func() bool { return !has() })
}

func TestHungDetachesDoNotDelayAttach(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	pv := c.volume("data")
	for i := range 12 { // exceeds the number of workers
		name := "old-" + string(rune('a'+i))
		old := c.volume(name)
		c.create(c.attachment(name, old.Name, "node-1"))
		eventually.True(t, "a volume is attached", func() bool { return c.getVA(name).Status.Attached })
	}
	c.driver.SetPlan(fake.Always("ControllerUnpublishVolume", fake.Fault{Hang: true}))
	for i := range 12 {
		c.detach("old-" + string(rune('a'+i)))
	}
	eventually.True(t, "detaches hang", func() bool { return c.driver.Attachments() <= 2 })
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "another volume is attached in the meantime", func() bool { return c.getVA("va").Status.Attached })
	c.driver.SetPlan(nil)
}

func TestSecretsArePassedToCallsAndNotInErrors(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vault", Name: "login"}, Data: map[string][]byte{"password": []byte("hunter2"), "user": []byte("alice")}})
	class := c.class("secret")
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/controller-publish-secret-name": "login", "csi.storage.k8s.io/controller-publish-secret-namespace": "vault",
		"csiProvisionerSecretName": "login", "csiProvisionerSecretNamespace": "vault",
	}
	c.create(class)
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &class.Name
	c.create(claim)
	pv := c.waitBound("data")
	refuse := fake.Fault{Before: status.Error(codes.PermissionDenied, "wrong password hunter2")}
	c.driver.SetPlan(fake.Times(1, "ControllerPublishVolume", refuse))
	c.create(c.attachment("va", pv.Name, "node-1"))
	eventually.True(t, "the volume is attached", func() bool { return c.getVA("va").Status.Attached })
	c.detach("va")
	eventually.True(t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	c.deleteClaim("data")
	eventually.True(t, "the volume is deleted", func() bool { return len(c.driver.Volumes()) == 0 })

	for _, call := range c.driver.Calls("CreateVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "DeleteVolume") {
		if got := secretsOf(call.Request); got["password"] != "hunter2" || got["user"] != "alice" {
			t.Errorf("%s got the secrets %v", call.Method, got)
		}
	}
	if created := c.driver.Calls("CreateVolume")[0].Request.(*csi.CreateVolumeRequest); len(created.Parameters) != 0 {
		t.Errorf("reserved parameters were passed on: %v", created.Parameters)
	}
	events, err := c.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if strings.Contains(event.Message, "hunter2") {
			t.Errorf("event %q has the secret", event.Message)
		}
	}
}

func secretsOf(request proto.Message) map[string]string {
	if r, ok := request.(interface{ GetSecrets() map[string]string }); ok {
		return r.GetSecrets()
	}
	return nil
}
