package snapshot

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	snapshottyped "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/typed/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// problem is an error that is of use to whoever made the snapshot: something that they wrote, or what the driver says.
type problem struct{ error }

func problemf(format string, a ...any) error { return problem{fmt.Errorf(format, a...)} }

// tellable tells whether an error belongs into a status. Those of the API server do not: they pass.
func tellable(err error) bool {
	var p problem
	var d *driver.Error
	return errors.As(err, &p) || errors.As(err, &d)
}

// report writes an error into a snapshot's status, once, and returns it so that the key is tried again.
func (r *snapshotter) report(ctx context.Context, s *snapshotv1.VolumeSnapshot, cause error) error {
	if !tellable(cause) {
		return cause
	}
	message := cause.Error()
	if s.Status != nil && s.Status.Error != nil && ptr.Deref(s.Status.Error.Message, "") == message {
		return cause
	}
	now, err := r.snapshotClient(s).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil || now.UID != s.UID {
		return cause
	}
	if now.Status == nil {
		now.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false)}
	}
	now.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.Now()), Message: &message}
	if _, err := r.snapshotClient(s).UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
		return errors.Join(cause, fmt.Errorf("write status of VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err))
	}
	r.tell(s, corev1.EventTypeWarning, "SnapshotFailed", "%s", message)
	return cause
}

// reportContent does the same for a content.
func (r *snapshotter) reportContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, cause error) error {
	message := cause.Error()
	if !tellable(cause) || c.Status != nil && c.Status.Error != nil && ptr.Deref(c.Status.Error.Message, "") == message {
		return cause
	}
	wanted := c.DeepCopy()
	if wanted.Status == nil {
		wanted.Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(false)}
	}
	wanted.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.Now()), Message: &message}
	if _, err := r.contentClient().UpdateStatus(ctx, wanted, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return errors.Join(cause, fmt.Errorf("write status of VolumeSnapshotContent %q: %w", c.Name, err))
	}
	return cause
}

// tell tells the snapshot's user by an event.
func (r *snapshotter) tell(s *snapshotv1.VolumeSnapshot, kind, reason, format string, a ...any) {
	object := reference(s)
	r.Events.Eventf(&object, kind, reason, format, a...)
}

func (r *snapshotter) contentClient() snapshottyped.VolumeSnapshotContentInterface {
	return r.Snapshots.SnapshotV1().VolumeSnapshotContents()
}

func (r *snapshotter) snapshotClient(s *snapshotv1.VolumeSnapshot) snapshottyped.VolumeSnapshotInterface {
	return r.Snapshots.SnapshotV1().VolumeSnapshots(s.Namespace)
}
