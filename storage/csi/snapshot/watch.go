package snapshot

import (
	"reflect"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/controller"
)

// claimOf is the claim that a snapshot is taken of, as namespace/name.
func claimOf(object any) []string {
	if s, ok := object.(*snapshotv1.VolumeSnapshot); ok && s.Spec.Source.PersistentVolumeClaimName != nil {
		return []string{s.Namespace + "/" + *s.Spec.Source.PersistentVolumeClaimName}
	}
	return nil
}

// refOf is the snapshot that a content refers to, as namespace/name.
func refOf(object any) []string {
	if c, ok := object.(*snapshotv1.VolumeSnapshotContent); ok {
		return []string{c.Spec.VolumeSnapshotRef.Namespace + "/" + c.Spec.VolumeSnapshotRef.Name}
	}
	return nil
}

func (r *snapshotter) contentsOf(key controller.Key) (found []*snapshotv1.VolumeSnapshotContent) {
	objects, _ := r.byRef.ByIndex(byRef, key.Namespace+"/"+key.Name) // the index is there: Feature made it
	for _, object := range objects {
		if c, ok := object.(*snapshotv1.VolumeSnapshotContent); ok {
			found = append(found, c.DeepCopy())
		}
	}
	return found
}

func (r *snapshotter) snapshotsOf(namespace, claim string) (found []*snapshotv1.VolumeSnapshot) {
	objects, _ := r.byClaim.ByIndex(byClaim, namespace+"/"+claim) // the index is there: Feature made it
	for _, object := range objects {
		if s, ok := object.(*snapshotv1.VolumeSnapshot); ok {
			found = append(found, s)
		}
	}
	return found
}

func contentKeys(object any) []controller.Key {
	c, ok := object.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return nil
	}
	return []controller.Key{{Namespace: c.Spec.VolumeSnapshotRef.Namespace, Name: c.Spec.VolumeSnapshotRef.Name}}
}

// claimKeys are the snapshots that wait for a claim, or that wait until nothing is made from them.
func (r *snapshotter) claimKeys(object any) (keys []controller.Key) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	for _, s := range r.snapshotsOf(claim.Namespace, claim.Name) {
		if !ready(s) {
			keys = append(keys, controller.Key{Namespace: s.Namespace, Name: s.Name})
		}
	}
	if name, ok := madeFrom(claim); ok {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: name})
	}
	return keys
}

// classKeys are the snapshots that wait for a class.
func (r *snapshotter) classKeys(object any) (keys []controller.Key) {
	class, ok := object.(*snapshotv1.VolumeSnapshotClass)
	if !ok {
		return nil
	}
	for _, object := range r.byClaim.List() {
		s, ok := object.(*snapshotv1.VolumeSnapshot)
		if ok && !ready(s) && (s.Spec.VolumeSnapshotClassName == nil || *s.Spec.VolumeSnapshotClassName == class.Name) {
			keys = append(keys, controller.Key{Namespace: s.Namespace, Name: s.Name})
		}
	}
	return keys
}

// snapshotChanged leaves out the status, which only this loop writes: an error in it must not cause another try before its time.
func snapshotChanged(old, new any) bool {
	before, after := old.(*snapshotv1.VolumeSnapshot), new.(*snapshotv1.VolumeSnapshot)
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!reflect.DeepEqual(before.Spec, after.Spec) || !slices.Equal(before.Finalizers, after.Finalizers)
}

func contentChanged(old, new any) bool {
	before, after := old.(*snapshotv1.VolumeSnapshotContent), new.(*snapshotv1.VolumeSnapshotContent)
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!reflect.DeepEqual(before.Spec, after.Spec) || !reflect.DeepEqual(before.Labels, after.Labels)
}

func claimChanged(old, new any) bool {
	before, after := old.(*corev1.PersistentVolumeClaim), new.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.Phase != after.Status.Phase || before.Spec.VolumeName != after.Spec.VolumeName
}
