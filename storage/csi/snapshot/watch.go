package snapshot

import (
	"reflect"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/controller"
)

// claimOf returns a snapshot's source claim in the form namespace/name.
func claimOf(object any) []string {
	if s, ok := object.(*snapshotv1.VolumeSnapshot); ok && s.Spec.Source.PersistentVolumeClaimName != nil {
		return []string{s.Namespace + "/" + *s.Spec.Source.PersistentVolumeClaimName}
	}
	return nil
}

// refOf returns the snapshot that a VolumeSnapshotContent references, in the form namespace/name.
func refOf(object any) []string {
	if c, ok := object.(*snapshotv1.VolumeSnapshotContent); ok {
		return []string{c.Spec.VolumeSnapshotRef.Namespace + "/" + c.Spec.VolumeSnapshotRef.Name}
	}
	return nil
}

func (r *snapshotter) contentsOf(key controller.Key) (result []*snapshotv1.VolumeSnapshotContent) {
	objects, _ := r.byRef.ByIndex(byRef, key.Namespace+"/"+key.Name) // Feature adds the index
	for _, object := range objects {
		if c, ok := object.(*snapshotv1.VolumeSnapshotContent); ok {
			result = append(result, c.DeepCopy())
		}
	}
	return result
}

func (r *snapshotter) snapshotsOf(namespace, claim string) (result []*snapshotv1.VolumeSnapshot) {
	objects, _ := r.byClaim.ByIndex(byClaim, namespace+"/"+claim) // Feature adds the index
	for _, object := range objects {
		if s, ok := object.(*snapshotv1.VolumeSnapshot); ok {
			result = append(result, s)
		}
	}
	return result
}

func contentKeys(object any) []controller.Key {
	c, ok := object.(*snapshotv1.VolumeSnapshotContent)
	if !ok {
		return nil
	}
	return []controller.Key{{Namespace: c.Spec.VolumeSnapshotRef.Namespace, Name: c.Spec.VolumeSnapshotRef.Name}}
}

// claimKeys returns the keys of the snapshots that wait for a claim, and of the snapshot from which
// the claim is restored.
func (r *snapshotter) claimKeys(object any) (keys []controller.Key) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	for _, s := range r.snapshotsOf(claim.Namespace, claim.Name) {
		if !isReady(s) {
			keys = append(keys, controller.Key{Namespace: s.Namespace, Name: s.Name})
		}
	}
	if name, ok := sourceSnapshot(claim); ok {
		keys = append(keys, controller.Key{Namespace: claim.Namespace, Name: name})
	}
	return keys
}

// classKeys returns the keys of the snapshots that wait for a class.
func (r *snapshotter) classKeys(object any) (keys []controller.Key) {
	class, ok := object.(*snapshotv1.VolumeSnapshotClass)
	if !ok {
		return nil
	}
	for _, object := range r.byClaim.List() {
		s, ok := object.(*snapshotv1.VolumeSnapshot)
		if ok && !isReady(s) && (s.Spec.VolumeSnapshotClassName == nil || *s.Spec.VolumeSnapshotClassName == class.Name) {
			keys = append(keys, controller.Key{Namespace: s.Namespace, Name: s.Name})
		}
	}
	return keys
}

// snapshotChanged reports whether an update to a VolumeSnapshot requires reconciliation. It ignores
// the status, which only this controller writes, because an error in the status must not cause an
// early retry.
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
