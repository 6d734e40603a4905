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

// provide takes a snapshot, or takes note of one that exists, and follows it until it is ready to use.
func (r *snapshotter) provide(ctx context.Context, s *snapshotv1.VolumeSnapshot) error {
	if ready(s) && hasFinalizers(s) {
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
	content, err = r.take(ctx, content)
	if err != nil {
		return r.report(ctx, s, err)
	}
	if err := r.publish(ctx, s, content); err != nil {
		return err
	}
	if !contentReady(content) {
		return controller.After(r.pause(s))
	}
	return r.unprotect(ctx, s)
}

// pause is how long a snapshot that is not ready may be left alone: the older it is, the longer.
func (r *snapshotter) pause(s *snapshotv1.VolumeSnapshot) time.Duration {
	return min(max(r.Poll, time.Since(s.CreationTimestamp.Time)/4), time.Minute)
}

func hasFinalizers(s *snapshotv1.VolumeSnapshot) bool {
	return slices.Contains(s.Finalizers, boundFinalizer) && slices.Contains(s.Finalizers, sourceFinalizer)
}

// prepare gives a snapshot its class and its finalizers, and makes sure that it exists and is not being deleted: the cache
// may show one that is long gone.
func (r *snapshotter) prepare(ctx context.Context, s *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshot, error) {
	wanted := s.DeepCopy()
	for _, finalizer := range []string{boundFinalizer, sourceFinalizer} {
		if !slices.Contains(wanted.Finalizers, finalizer) {
			wanted.Finalizers = append(wanted.Finalizers, finalizer)
		}
	}
	if s.Spec.Source.PersistentVolumeClaimName != nil && s.Spec.VolumeSnapshotClassName == nil {
		class, err := r.chooseClass()
		if err != nil {
			return s, err
		}
		wanted.Spec.VolumeSnapshotClassName = &class.Name
	}
	if !equality.Semantic.DeepEqual(s, wanted) {
		written, err := r.snapshotClient(s).Update(ctx, wanted, metav1.UpdateOptions{})
		if err != nil {
			return s, fmt.Errorf("protect VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
		}
		return written, nil
	}
	if content, err := r.contents.Get(contentName(s)); err == nil && handle(content) != "" {
		return s, nil // nothing will be made for it
	}
	now, err := r.snapshotClient(s).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return s, fmt.Errorf("read VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	if now.UID != s.UID || now.DeletionTimestamp != nil {
		return s, controller.After(50 * time.Millisecond) // until the cache shows it
	}
	return now, nil
}

// publish writes what is known of the content into the snapshot's status.
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
	wasReady := ready(s)
	wanted := s.DeepCopy()
	wanted.Status = status
	written, err := r.snapshotClient(s).UpdateStatus(ctx, wanted, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write status of VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err)
	}
	*s = *written
	if ready(s) && !wasReady {
		r.tell(s, corev1.EventTypeNormal, "SnapshotReady", "The snapshot is ready to use.")
	}
	return nil
}
