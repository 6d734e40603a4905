package csi

import (
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/capacity"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/provision"
)

const pendingFinalizer = "csi.slipway.io/provisioning"

// lastCreate returns the most recent CreateVolume request.
func (c *cluster) lastCreate() *csi.CreateVolumeRequest {
	c.t.Helper()
	calls := c.driver.Calls("CreateVolume")
	if len(calls) == 0 {
		c.t.Fatal("CreateVolume was not called")
	}
	return calls[len(calls)-1].Request.(*csi.CreateVolumeRequest)
}

func TestCreateRequestFollowsClaimAndClass(t *testing.T) {
	c := newCluster(t, fake.Options{})
	class := c.class("rich")
	class.Parameters = map[string]string{"type": "ssd", "csi.storage.k8s.io/fstype": "xfs"}
	class.MountOptions = []string{"noatime"}
	class.ReclaimPolicy = ptr.To(corev1.PersistentVolumeReclaimRetain)
	c.create(class)
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &class.Name
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
	c.create(claim)
	pv := c.waitBound("data")
	request := c.lastCreate()
	if request.Name != pv.Name || request.CapacityRange.RequiredBytes != 1<<30 {
		t.Errorf("request %v", request)
	}
	if diff := cmp.Diff(map[string]string{"type": "ssd"}, request.Parameters); diff != "" {
		t.Error(diff)
	}
	mount := request.VolumeCapabilities[0].GetMount()
	if len(request.VolumeCapabilities) != 2 || mount.GetFsType() != "xfs" || mount.GetMountFlags()[0] != "noatime" {
		t.Errorf("capabilities %v", request.VolumeCapabilities)
	}
	spec := pv.Spec
	if spec.CSI.FSType != "xfs" || spec.MountOptions[0] != "noatime" || spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || len(spec.AccessModes) != 2 {
		t.Errorf("PersistentVolume %+v", spec)
	}
}

func TestBlockVolumesAndClones(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	source := c.claim("source")
	source.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	c.create(source)
	original := c.waitBound("source")
	clone := c.claim("clone")
	clone.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	c.create(clone)
	pv := c.waitBound("clone")
	request := c.lastCreate()
	if request.VolumeCapabilities[0].GetBlock() == nil || *pv.Spec.VolumeMode != corev1.PersistentVolumeBlock {
		t.Errorf("request %v", request)
	}
	if got := request.VolumeContentSource.GetVolume().GetVolumeId(); got != original.Spec.CSI.VolumeHandle {
		t.Errorf("cloned from %q", got)
	}
}

func TestSourceIsProtectedWhileCloning(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.volume("source")
	slow := status.Error(codes.Unavailable, "copying takes a while")
	c.driver.SetPlan(fake.Always("CreateVolume", fake.Fault{Before: slow}))
	clone := c.claim("clone")
	clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	c.create(clone)
	eventually.True(t, "cloning has started", func() bool { return c.hasEvent("clone", "ProvisioningFailed") })
	c.deleteClaim("source")
	if source := c.getClaim("source"); source == nil || !slices.Contains(source.Finalizers, "provisioner.storage.kubernetes.io/cloning-protection") {
		t.Fatalf("the source was deleted while it was cloned: %v", source)
	}
	c.driver.SetPlan(nil)
	c.waitBound("clone")
	eventually.True(t, "the source is deleted after cloning", func() bool { return c.getClaim("source") == nil })
}

func TestCloneRequiresSameVolumeMode(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.volume("source")
	clone := c.claim("clone")
	clone.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	clone.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	c.create(clone)
	eventually.True(t, "the error is reported", func() bool { return c.hasEvent("clone", "ProvisioningFailed") })
	if n := len(c.driver.Volumes()); n != 1 {
		t.Errorf("the driver has %d volumes", n)
	}
}

func TestTopologyFollowsSelectedNode(t *testing.T) {
	zoneA, zoneB := map[string]string{"zone": "a"}, map[string]string{"zone": "b"}
	c := newCluster(t, fake.Options{Topology: zoneA})
	c.addNode("node-2", "other", zoneB)
	lateClass := c.class("late")
	lateClass.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	c.create(lateClass)
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &lateClass.Name
	c.create(claim)
	eventually.True(t, "the claim has its provisioner", func() bool { return len(c.getClaim("data").Annotations) > 0 })
	if n := len(c.driver.Calls("CreateVolume")); n != 0 {
		t.Fatalf("CreateVolume was called %d times before a node was selected", n)
	}
	c.selectNode("data", "node-1")
	pv := c.waitBound("data")
	want := &csi.TopologyRequirement{
		Requisite: []*csi.Topology{{Segments: zoneA}, {Segments: zoneB}}, Preferred: []*csi.Topology{{Segments: zoneA}, {Segments: zoneB}},
	}
	if got := c.lastCreate().AccessibilityRequirements; !proto.Equal(want, got) {
		t.Errorf("requirement %v", got)
	}
	term := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if term.Key != "zone" || term.Values[0] != "a" {
		t.Errorf("node affinity %v", pv.Spec.NodeAffinity)
	}
}

func (c *cluster) selectNode(claim, node string) {
	c.t.Helper()
	b := binder{client: c.client}
	change := patch{"metadata": patch{"annotations": patch{"volume.kubernetes.io/selected-node": node}}}
	if err := b.patchClaim(c.t.Context(), c.getClaim(claim), change); err != nil {
		c.t.Fatal(err)
	}
}

func TestFullNodeIsRescheduled(t *testing.T) {
	c := newCluster(t, fake.Options{Topology: map[string]string{"zone": "a"}})
	lateClass := c.class("late")
	lateClass.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	c.create(lateClass)
	c.driver.SetPlan(fake.Times(1, "CreateVolume", fake.Fault{Before: status.Error(codes.ResourceExhausted, "the disk is full")}))
	c.start()
	claim := c.claim("data")
	claim.Spec.StorageClassName = &lateClass.Name
	c.create(claim)
	c.selectNode("data", "node-1")
	eventually.True(t, "the selected node is removed", func() bool {
		claim := c.getClaim("data")
		return claim.Annotations["volume.kubernetes.io/selected-node"] == "" && len(claim.Finalizers) == 0 && len(c.driver.Calls("CreateVolume")) == 1
	})
}

func TestDeletedClaimLeaksNoVolume(t *testing.T) {
	c := newCluster(t, fake.Options{})
	// The driver creates the volume, but its response is lost.
	c.driver.SetPlan(fake.Always("CreateVolume", fake.Fault{After: status.Error(codes.Unavailable, "no response")}))
	c.start()
	c.create(c.claim("data"))
	eventually.True(t, "the volume exists without a PersistentVolume", func() bool { return len(c.driver.Volumes()) == 1 })
	c.deleteClaim("data")
	if claim := c.getClaim("data"); claim == nil || claim.Finalizers[0] != pendingFinalizer {
		t.Fatal("the claim is deleted while a volume might exist")
	}
	c.driver.SetPlan(nil)
	eventually.True(t, "claim and volume are deleted", func() bool { return c.getClaim("data") == nil && len(c.driver.Volumes()) == 0 })
}

func TestMismatchedVolumeIsDeleted(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.driver.SetPlan(fake.Times(1, "CreateVolume", fake.Fault{Lie: func(response proto.Message) {
		response.(*csi.CreateVolumeResponse).Volume.CapacityBytes = 1
	}}))
	c.start()
	c.create(c.claim("data"))
	pv := c.waitBound("data")
	if !c.hasEvent("data", "ProvisioningFailed") {
		t.Error("the driver did not return a false response")
	}
	if n := len(c.driver.Volumes()); n != 1 || pv.Spec.Capacity.Storage().Value() != 1<<30 {
		t.Errorf("%d volumes, one of %v", n, pv.Spec.Capacity)
	}
}

func TestPerNodeDriversShareClaims(t *testing.T) {
	c := newCluster(t, fake.Options{Topology: map[string]string{"node": "one"}})
	other := &cluster{t: t, api: c.api, client: c.client, driver: fake.New(fake.Options{Topology: map[string]string{"node": "two"}}), socket: c.socket + "2"}
	server, err := other.driver.Listen(other.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	c.addNode("node-2", "node", map[string]string{"node": "two"})
	c.start(func(part *Controller) { part.Node = "node-1" })
	other.start(func(part *Controller) { part.Node = "node-2" })
	names := strings.Fields("a b c d e f g h")
	for _, name := range names {
		c.create(c.claim(name))
	}
	result := map[string]int{}
	for _, name := range names {
		pv := c.waitBound(name)
		result[pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]]++
	}
	if item, two := len(c.driver.Volumes()), len(other.driver.Volumes()); item+two != len(names) || result["one"] != item || result["two"] != two {
		t.Errorf("volumes of the first %d, of the second %d, PersistentVolumes %v", item, two, result)
	}
	for _, name := range names {
		c.deleteClaim(name)
	}
	eventually.True(t, "each node deletes its own volume", func() bool { return len(c.driver.Volumes())+len(other.driver.Volumes()) == 0 })
}

func TestCapacityIsPublishedPerClassAndSegment(t *testing.T) {
	c := newCluster(t, fake.Options{Topology: map[string]string{"zone": "a"}, Capacity: 5 << 30})
	c.create(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: fake.Name}})
	lateClass := c.class("late")
	lateClass.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	c.create(lateClass)
	track := func(part *Controller) {
		part.Features = Features(Options{Capacity: capacity.Options{Namespace: "kube-system", Interval: 4 * quick, Debounce: quick}, Provision: provision.Options{Retry: quick}})
	}
	published := func() []storagev1.CSIStorageCapacity {
		list, err := c.client.StorageV1().CSIStorageCapacities("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	c.start(track).Stop()
	c.start(track) // the second instance must not create another object
	eventually.Equal(t, "objects", func() int { return len(published()) }, 1)
	object := published()[0]
	if object.Capacity.Value() != 5<<30 || object.NodeTopology.MatchLabels["zone"] != "a" || object.StorageClassName != "late" || object.OwnerReferences[0].Kind != "CSIDriver" {
		t.Errorf("published %+v", object)
	}
	c.volume("data")
	eventually.Equal(t, "the remaining capacity", func() int64 { return published()[0].Capacity.Value() }, 4<<30)
	if err := c.client.StorageV1().StorageClasses().Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "objects of a deleted class", func() int { return len(published()) }, 0)
}
