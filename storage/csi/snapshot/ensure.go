package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/controller"
)

// ensure creates or imports a snapshot, and syncs its status until the snapshot is ready to use.
func (r *snapshotter) ensure(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if isReady(s) && hasFinalizers(s) {
		return r.unprotect(ctx, s)
	}
	s, err := r.prepare(ctx, s)
	if err != nil {
		return r.report(ctx, s, err)
	}
	content, err := r.bind(ctx, s)
	if err != nil {
		return r.report(ctx, s, err)
	}
	content, err = r.syncContent(ctx, content)
	if err != nil {
		return r.report(ctx, s, err)
	}
	if err := r.publish(ctx, s, content); err != nil {
		return err
	}
	if !contentReady(content) {
		return controller.RequeueAfter(r.pollDelay(s))
	}
	return r.unprotect(ctx, s)
}

// pollDelay returns the delay before an unready snapshot is checked again. The delay grows with the
// snapshot's age.
func (r *snapshotter) pollDelay(s *snapshotv1.VolumeSnapshot) time.Duration {
	return min(max(r.Poll, time.Since(s.CreationTimestamp.Time)/4), time.Minute)
}

func hasFinalizers(s *snapshotv1.VolumeSnapshot) bool {
	return slices.Contains(s.Finalizers, boundFinalizer) && slices.Contains(s.Finalizers, sourceFinalizer)
}

// prepare sets a snapshot's class and finalizers. It also verifies that the snapshot exists and is
// not being deleted, because the cache might be stale.
func (r *snapshotter) prepare(ctx context.Context, s *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshot, error) {
	desired := s.DeepCopy()
	for _, finalizer := range []string{boundFinalizer, sourceFinalizer} {
		if !slices.Contains(desired.Finalizers, finalizer) {
			desired.Finalizers = append(desired.Finalizers, finalizer)
		}
	}
	if s.Spec.Source.PersistentVolumeClaimName != nil && s.Spec.VolumeSnapshotClassName == nil {
		class, err := r.defaultClassOf()
		if err != nil {
			return s, err
		}
		desired.Spec.VolumeSnapshotClassName = &class.Name
	}
	if !equality.Semantic.DeepEqual(s, desired) {
		updated, err := r.snapshotClient(s).Update(ctx, desired, metav1.UpdateOptions{})
		if err != nil {
			return s, fmt.Errorf("protect VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
		}
		return updated, nil
	}
	if content, err := r.contents.Get(contentName(s)); err == nil && handleOf(content) != "" {
		return s, nil // the snapshot exists in the storage, so a stale cache is harmless
	}
	current, err := r.snapshotClient(s).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return s, fmt.Errorf("read VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	if current.UID != s.UID || current.DeletionTimestamp != nil {
		return s, controller.RequeueAfter(50 * time.Millisecond) // retry when the cache is up to date
	}
	return current, nil
}

// publish writes the VolumeSnapshotContent's state to the snapshot's status.
func (r *snapshotter) publish(ctx context.Context, s *snapshotv1.VolumeSnapshot, c *snapshotv1.VolumeSnapshotContent) error {
	status := &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &c.Name, ReadyToUse: ptr.To(contentReady(c))}
	if c.Status != nil && c.Status.CreationTime != nil {
		status.CreationTime = ptr.To(metav1.NewTime(time.Unix(0, *c.Status.CreationTime)).Rfc3339Copy())
	}
	if c.Status != nil && c.Status.RestoreSize != nil {
		status.RestoreSize = resource.NewQuantity(*c.Status.RestoreSize, resource.BinarySI)
	}
	if equality.Semantic.DeepEqual(s.Status, status) {
		return nil
	}
	wasReady := isReady(s)
	desired := s.DeepCopy()
	desired.Status = status
	updated, err := r.snapshotClient(s).UpdateStatus(ctx, desired, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update status of VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	*s = *updated
	if isReady(s) && !wasReady {
		r.recordEvent(s, corev1.EventTypeNormal, "SnapshotReady", "The snapshot is ready to use.")
	}
	return nil
}
