package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// remove removes the finalizers from a snapshot that is being deleted, unless a claim is being
// restored from it. If the deletion policy of the snapshot's VolumeSnapshotContent is Delete,
// remove first deletes the VolumeSnapshotContent and the snapshot in the storage system.
func (r *snapshotter) remove(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if claim := r.restoringClaim(s); claim != "" {
		r.recordEvent(s, corev1.EventTypeNormal, "SnapshotInUse", "The snapshot is deleted when PersistentVolumeClaim %q has been restored from it.", claim)
		return controller.RequeueAfter(10 * time.Second)
	}
	content, err := r.content(ctx, s)
	if err != nil {
		return err
	}
	if content != nil && isBound(s, content) && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := r.deleteContent(ctx, content); err != nil {
			return r.report(ctx, s, err)
		}
	}
	return r.removeFinalizers(ctx, s)
}

// restoringClaim returns the name of a claim whose volume is being restored from the snapshot, or
// "".
func (r *snapshotter) restoringClaim(s *snapshotv1.VolumeSnapshot) string {
	claims, _ := r.claims.PersistentVolumeClaims(s.Namespace).List(labels.Everything())
	for _, claim := range claims {
		if name, ok := sourceSnapshot(claim); ok && name == s.Name && claim.Status.Phase == corev1.ClaimPending && claim.DeletionTimestamp == nil && isReady(s) {
			return claim.Name
		}
	}
	return ""
}

// sourceSnapshot returns the name of the snapshot from which a claim is restored.
func sourceSnapshot(claim *corev1.PersistentVolumeClaim) (string, bool) {
	source := claim.Spec.DataSource
	if source == nil || source.Kind != "VolumeSnapshot" || source.APIGroup == nil || *source.APIGroup != snapshotv1.GroupName {
		return "", false
	}
	return source.Name, true
}

// removeFinalizers removes the finalizers from a snapshot and from its claim.
func (r *snapshotter) removeFinalizers(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if err := r.unprotect(ctx, s); err != nil {
		return err
	}
	finalizers := slices.DeleteFunc(slices.Clone(s.Finalizers), func(f string) bool { return f == boundFinalizer || f == sourceFinalizer })
	if len(finalizers) == len(s.Finalizers) {
		return nil
	}
	desired := s.DeepCopy()
	desired.Finalizers = finalizers
	if _, err := r.snapshotClient(s).Update(ctx, desired, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	return nil
}

// reconcileUnbound reconciles a VolumeSnapshotContent whose snapshot has been deleted or has not
// been created yet.
func (r *snapshotter) reconcileUnbound(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	if c.Spec.VolumeSnapshotRef.UID == "" {
		if c.DeletionTimestamp != nil {
			return r.deleteContent(ctx, c)
		}
		_, err := r.syncContent(ctx, c) // verifies that the snapshot exists in the storage
		return err
	}
	ref := c.Spec.VolumeSnapshotRef
	s, err := r.Snapshots.SnapshotV1().VolumeSnapshots(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read VolumeSnapshot \"%s/%s\": %w", ref.Namespace, ref.Name, err)
	case err == nil && s.UID == ref.UID && contentName(s) == c.Name:
		return nil // the cache is stale
	case c.DeletionTimestamp == nil && c.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete:
		return nil // the snapshot is retained
	}
	return r.deleteContent(ctx, c)
}

// deleteContent deletes a VolumeSnapshotContent and, unless the policy is Retain, the snapshot in
// the storage system.
func (r *snapshotter) deleteContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	if c.DeletionTimestamp == nil {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID}}
		if err := r.contentClient().Delete(ctx, c.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete VolumeSnapshotContent %q: %w", c.Name, err)
		}
	}
	// Read the current VolumeSnapshotContent, because CreateSnapshot might have been called for it
	// since it was cached.
	c, err := r.getContent(ctx, c.Name)
	if err != nil || c == nil || c.DeletionTimestamp == nil {
		return err
	}
	if c.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := r.deleteSnapshot(ctx, c); err != nil {
			return r.reportContent(ctx, c, err)
		}
	}
	if !slices.Contains(c.Finalizers, contentFinalizer) {
		return nil
	}
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == contentFinalizer })
	if _, err := r.updateContent(ctx, c); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// deleteSnapshot deletes the snapshot in the storage system. If the outcome of CreateSnapshot is
// unknown, it first calls CreateSnapshot again to determine the ID.
func (r *snapshotter) deleteSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	id := handleOf(c)
	if id == "" && c.Annotations[beingCreated] != "" {
		snap, err := r.createSnapshot(ctx, c)
		switch {
		case driver.HasNoEffect(err):
			return nil // for example, because the volume no longer exists
		case err != nil:
			return err
		}
		id = snap.GetSnapshotId()
	}
	if id == "" {
		return nil
	}
	secrets, err := r.deletionSecrets(ctx, c)
	if err != nil {
		return err
	}
	_, err = r.Driver.Controller().DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id, Secrets: secrets})
	return err
}
