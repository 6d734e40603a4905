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

// remove ends a snapshot that was deleted: with its content and what is in the storage if the policy says so, else alone.
func (r *snapshotter) remove(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if claim := r.beingMade(s); claim != "" {
		r.tell(s, corev1.EventTypeNormal, "SnapshotInUse", "The snapshot is deleted when PersistentVolumeClaim %q has been made from it.", claim)
		return controller.After(10 * time.Second)
	}
	content, err := r.content(ctx, s)
	if err != nil {
		return err
	}
	if content != nil && bound(s, content) && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := r.destroy(ctx, content); err != nil {
			return r.report(ctx, s, err)
		}
	}
	return r.release(ctx, s)
}

// beingMade is a claim whose volume is being made from the snapshot, or empty.
func (r *snapshotter) beingMade(s *snapshotv1.VolumeSnapshot) string {
	claims, _ := r.claims.PersistentVolumeClaims(s.Namespace).List(labels.Everything())
	for _, claim := range claims {
		if name, ok := madeFrom(claim); ok && name == s.Name && claim.Status.Phase == corev1.ClaimPending && claim.DeletionTimestamp == nil && ready(s) {
			return claim.Name
		}
	}
	return ""
}

// madeFrom is the snapshot of its namespace that a claim is made from.
func madeFrom(claim *corev1.PersistentVolumeClaim) (string, bool) {
	source := claim.Spec.DataSource
	if source == nil || source.Kind != "VolumeSnapshot" || source.APIGroup == nil || *source.APIGroup != snapshotv1.GroupName {
		return "", false
	}
	return source.Name, true
}

// release takes this loop's finalizers from a snapshot and from its claim.
func (r *snapshotter) release(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if err := r.unprotect(ctx, s); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(s.Finalizers), func(f string) bool { return f == boundFinalizer || f == sourceFinalizer })
	if len(left) == len(s.Finalizers) {
		return nil
	}
	wanted := s.DeepCopy()
	wanted.Finalizers = left
	if _, err := r.snapshotClient(s).Update(ctx, wanted, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	return nil
}

// reconcileLoose serves a content whose snapshot is gone, or has not come yet.
func (r *snapshotter) reconcileLoose(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	if c.Spec.VolumeSnapshotRef.UID == "" {
		if c.DeletionTimestamp != nil {
			return r.destroy(ctx, c)
		}
		_, err := r.take(ctx, c) // so that it is known to be there
		return err
	}
	ref := c.Spec.VolumeSnapshotRef
	s, err := r.Snapshots.SnapshotV1().VolumeSnapshots(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("read VolumeSnapshot \"%s/%s\": %w", ref.Namespace, ref.Name, err)
	case err == nil && s.UID == ref.UID && contentName(s) == c.Name:
		return nil // the cache does not show it yet
	case c.DeletionTimestamp == nil && c.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete:
		return nil // kept
	}
	return r.destroy(ctx, c)
}

// destroy deletes a content, with the snapshot in the storage unless the policy is to retain it.
func (r *snapshotter) destroy(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	if c.DeletionTimestamp == nil {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID}}
		if err := r.contentClient().Delete(ctx, c.Name, options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete VolumeSnapshotContent %q: %w", c.Name, err)
		}
	}
	// What was known of it may be old: since then the driver may have been asked to take the snapshot.
	c, err := r.live(ctx, c.Name)
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

// deleteSnapshot deletes in the storage. When the outcome of CreateSnapshot is not known, it is asked for first.
func (r *snapshotter) deleteSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) error {
	id := handle(c)
	if id == "" && c.Annotations[beingCreated] != "" {
		answer, err := r.createSnapshot(ctx, c)
		switch {
		case driver.Certain(err):
			return nil // such as: the volume is gone
		case err != nil:
			return err
		}
		id = answer.GetSnapshotId()
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
