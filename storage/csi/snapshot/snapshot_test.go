package snapshot

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

func TestSnapshotLifecycle(t *testing.T) {
	b := newBench(t, fake.Options{}).start()
	b.take("monday", "")
	s := b.waitReady("monday")
	if s.Spec.VolumeSnapshotClassName == nil || *s.Spec.VolumeSnapshotClassName != "fast" {
		t.Errorf("class %v, want the default", s.Spec.VolumeSnapshotClassName)
	}
	if s.Status.RestoreSize.Value() != 5<<20 || s.Status.CreationTime == nil || s.Status.Error != nil {
		t.Errorf("status %+v", s.Status)
	}
	contents := b.contents()
	if len(contents) != 1 || *s.Status.BoundVolumeSnapshotContentName != contents[0].Name || contents[0].Spec.VolumeSnapshotRef.UID != s.UID {
		t.Fatalf("the snapshot is bound to %v, contents %v", s.Status.BoundVolumeSnapshotContentName, contents)
	}
	snapshot := b.storage.Snapshots()["snapshot-"+string(s.UID)]
	if handleOf(&contents[0]) != snapshot.ID || snapshot.ID == "" || contents[0].Annotations[beingCreated] != "" {
		t.Errorf("content %+v, in the storage %+v", contents[0], snapshot)
	}
	eventually.Equal(t, "finalizers of the claim", func() int { return len(b.claim("data").Finalizers) }, 0)
	b.delete("monday")
	b.waitGone("monday")
	b.clean("after the deletion")
}

func TestRetainPolicyKeepsSnapshot(t *testing.T) {
	b := newBench(t, fake.Options{})
	b.class("kept", snapshotv1.VolumeSnapshotContentRetain, false)
	b.start()
	b.take("monday", "kept")
	b.waitReady("monday")
	b.delete("monday")
	b.waitGone("monday")
	if len(b.contents()) != 1 || len(b.storage.Snapshots()) != 1 {
		t.Errorf("%d contents, %d snapshots in the storage; want one of each", len(b.contents()), len(b.storage.Snapshots()))
	}
	b.must(b.objects.SnapshotV1().VolumeSnapshotContents().Delete(t.Context(), b.contents()[0].Name, metav1.DeleteOptions{}))
	eventually.Equal(t, "contents", func() int { return len(b.contents()) }, 0)
	if len(b.storage.Snapshots()) != 1 {
		t.Error("the snapshot is gone from the storage")
	}
}

// exists creates a snapshot in the storage and a VolumeSnapshotContent for it. The
// VolumeSnapshotContent references the VolumeSnapshot ns/monday, which does not exist yet.
func (b *bench) exists(change func(*snapshotv1.VolumeSnapshotContent)) string {
	b.t.Helper()
	response, err := b.driver.Controller().CreateSnapshot(b.t.Context(), &csi.CreateSnapshotRequest{Name: "by hand", SourceVolumeId: "volume-1"})
	b.must(err)
	id := response.GetSnapshot().GetSnapshotId()
	c := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: snapshotv1.VolumeSnapshotContentSpec{
		Driver: fake.Name, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Source:            snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &id},
		VolumeSnapshotRef: corev1.ObjectReference{Namespace: namespace, Name: "monday"},
	}}
	if change != nil {
		change(c)
	}
	_, err = b.objects.SnapshotV1().VolumeSnapshotContents().Create(b.t.Context(), c, metav1.CreateOptions{})
	b.must(err)
	return id
}

// use creates the VolumeSnapshot ns/monday for the existing VolumeSnapshotContent "old".
func (b *bench) use() {
	b.t.Helper()
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday"}}
	s.Spec.Source.VolumeSnapshotContentName = ptr.To("old")
	b.make(s)
}

func TestExistingSnapshotIsBound(t *testing.T) {
	lacks := func(rpc ...csi.ControllerServiceCapability_RPC_Type) fake.Options {
		return fake.Options{LacksController: rpc}
	}
	get, list := csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS
	for name, options := range map[string]fake.Options{"get": {}, "list": lacks(get), "neither": lacks(get, list)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, options).start()
			id := b.exists(nil)
			b.use()
			s := b.waitReady("monday")
			if c := b.contents()[0]; c.Spec.VolumeSnapshotRef.UID != s.UID || handleOf(&c) != id {
				t.Errorf("content %+v", c)
			}
			// The only call is from b.exists.
			if count := len(b.storage.Calls("CreateSnapshot")); count != 1 {
				t.Errorf("%d calls of CreateSnapshot", count)
			}
			b.delete("monday")
			b.waitGone("monday")
			b.clean("after the deletion")
		})
	}
}

func TestContentOfAnotherSnapshotIsNotBound(t *testing.T) {
	b := newBench(t, fake.Options{}).start()
	b.exists(func(c *snapshotv1.VolumeSnapshotContent) { c.Spec.VolumeSnapshotRef.Name = "tuesday" })
	b.use()
	b.waitProblem("monday", `VolumeSnapshotContent "old" belongs to another VolumeSnapshot`)
	b.delete("monday")
	b.waitGone("monday")
	if len(b.contents()) != 1 || len(b.storage.Snapshots()) != 1 {
		t.Error("the other snapshot's content was deleted")
	}
}

func TestUnreadySnapshotIsPolled(t *testing.T) {
	lacks := func(rpc ...csi.ControllerServiceCapability_RPC_Type) fake.Options {
		return fake.Options{LacksController: rpc, SnapshotSteps: 3}
	}
	get, list := csi.ControllerServiceCapability_RPC_GET_SNAPSHOT, csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS
	tests := map[string]struct {
		options fake.Options
		asks    string
	}{"get": {lacks(), "GetSnapshot"}, "list": {lacks(get), "ListSnapshots"}, "create again": {lacks(get, list), "CreateSnapshot"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tt.options).start()
			b.take("monday", "fast")
			b.waitReady("monday")
			if n := len(b.storage.Calls(tt.asks)); n < 3 {
				t.Errorf("%d calls of %s, want at least 3", n, tt.asks)
			}
			if n := len(b.storage.Snapshots()); n != 1 {
				t.Errorf("%d snapshots in the storage", n)
			}
		})
	}
}

func TestMissingObjectsAreReportedUntilTheyExist(t *testing.T) {
	t.Run("class", func(t *testing.T) {
		b := newBench(t, fake.Options{}).start()
		b.take("monday", "slow")
		b.waitProblem("monday", `VolumeSnapshotClass "slow" does not exist`)
		b.class("slow", snapshotv1.VolumeSnapshotContentDelete, false)
		b.waitReady("monday")
	})
	t.Run("claim", func(t *testing.T) {
		b := newBench(t, fake.Options{}).start()
		s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday"}}
		s.Spec.Source.PersistentVolumeClaimName = ptr.To("later")
		b.make(s)
		b.waitProblem("monday", `PersistentVolumeClaim "later" does not exist`)
		b.bind("later", "later")
		b.waitReady("monday")
	})
	t.Run("content", func(t *testing.T) {
		b := newBench(t, fake.Options{}).start()
		b.use()
		b.waitProblem("monday", `VolumeSnapshotContent "old" does not exist; create it, or create a new VolumeSnapshot with a correct spec.source`)
		b.exists(nil)
		b.waitReady("monday")
	})
	t.Run("one default class", func(t *testing.T) {
		b := newBench(t, fake.Options{})
		b.class("second", snapshotv1.VolumeSnapshotContentDelete, true)
		b.start()
		b.take("monday", "")
		b.waitProblem("monday", `the snapshot has no VolumeSnapshotClass, and CSI driver "fake.csi.slipway.io" has several default classes: ["fast" "second"]`)
		b.delete("monday")
		b.waitGone("monday")
	})
	t.Run("capability", func(t *testing.T) {
		b := newBench(t, fake.Options{LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT}}).start()
		b.take("monday", "")
		b.waitProblem("monday", `CSI driver "fake.csi.slipway.io" does not support creating snapshots`)
		b.delete("monday")
		b.waitGone("monday")
		b.clean("after the deletion")
	})
}

func TestVolumeOfAnotherClaimIsNotRead(t *testing.T) {
	b := newBench(t, fake.Options{}).start()
	_, err := b.kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim("earlier", "pv"), metav1.CreateOptions{})
	b.must(err)
	s := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monday"}}
	s.Spec.Source.PersistentVolumeClaimName = ptr.To("earlier")
	b.make(s)
	b.waitProblem("monday", `PersistentVolume "pv" is not bound to PersistentVolumeClaim "earlier"`)
	if n := len(b.storage.Snapshots()); n != 0 {
		t.Errorf("%d snapshots in the storage", n)
	}
}

func TestSnapshotIsProtectedWhileRestoring(t *testing.T) {
	b := newBench(t, fake.Options{}).start()
	b.take("monday", "")
	b.waitReady("monday")
	restored := claim("restored", "")
	restored.Status.Phase = corev1.ClaimPending
	restored.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: "monday"}
	_, err := b.kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), restored, metav1.CreateOptions{})
	b.must(err)
	b.component.Stop()
	b.start() // the new caches contain the claim
	b.delete("monday")
	b.take("tuesday", "")
	b.waitReady("tuesday")
	if s := b.get("monday"); s == nil || len(b.storage.Snapshots()) != 2 {
		t.Fatal("the snapshot is deleted")
	}
	now := b.claim("restored")
	now.Status.Phase = corev1.ClaimBound
	_, err = b.kube.CoreV1().PersistentVolumeClaims(namespace).UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
	b.must(err)
	b.waitGone("monday")
}

func TestOrphanedContentIsDeleted(t *testing.T) {
	b := newBench(t, fake.Options{}).start()
	b.take("monday", "")
	s := b.waitReady("monday")
	eventually.Equal(t, "finalizers of the claim", func() int { return len(b.claim("data").Finalizers) }, 0)
	b.component.Stop()
	s.Finalizers = nil // a user removes the finalizers
	_, err := b.objects.SnapshotV1().VolumeSnapshots(namespace).Update(t.Context(), s, metav1.UpdateOptions{})
	b.must(err)
	b.delete(s.Name)
	b.start()
	eventually.Equal(t, "contents", func() int { return len(b.contents()) }, 0)
	b.clean("afterwards")
}
