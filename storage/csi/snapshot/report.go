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

// userError is an error that is useful to the snapshot's user: an error in an object, or an error
// from the driver.
type userError struct{ error }

func userErrorf(format string, a ...any) error { return userError{fmt.Errorf(format, a...)} }

// isUserError reports whether an error should be recorded in a status. API server errors should not
// be recorded, because they are temporary.
func isUserError(err error) bool {
	var p userError
	var d *driver.Error
	return errors.As(err, &p) || errors.As(err, &d)
}

// report writes an error to a snapshot's status if the error is new. It returns the error so that
// the key is retried.
func (r *snapshotter) report(ctx context.Context, s *snapshotv1.VolumeSnapshot, cause error) error {
	if !isUserError(cause) {
		return cause
	}
	message := cause.Error()
	if s.Status != nil && s.Status.Error != nil && ptr.Deref(s.Status.Error.Message, "") == message {
		return cause
	}
	current, err := r.snapshotClient(s).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil || current.UID != s.UID {
		return cause
	}
	if current.Status == nil {
		current.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(false)}
	}
	current.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.Now()), Message: &message}
	if _, err := r.snapshotClient(s).UpdateStatus(ctx, current, metav1.UpdateOptions{}); err != nil {
		return errors.Join(cause, fmt.Errorf("update status of VolumeSnapshot \"%s/%s\": %w", s.Namespace, s.Name, err))
	}
	r.recordEvent(s, corev1.EventTypeWarning, "SnapshotFailed", "%s", message)
	return cause
}

// reportContent is like report, but for a VolumeSnapshotContent.
func (r *snapshotter) reportContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, cause error) error {
	message := cause.Error()
	if !isUserError(cause) || c.Status != nil && c.Status.Error != nil && ptr.Deref(c.Status.Error.Message, "") == message {
		return cause
	}
	desired := c.DeepCopy()
	if desired.Status == nil {
		desired.Status = &snapshotv1.VolumeSnapshotContentStatus{ReadyToUse: ptr.To(false)}
	}
	desired.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.Now()), Message: &message}
	if _, err := r.contentClient().UpdateStatus(ctx, desired, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return errors.Join(cause, fmt.Errorf("update status of VolumeSnapshotContent %q: %w", c.Name, err))
	}
	return cause
}

// recordEvent records an event for the snapshot.
func (r *snapshotter) recordEvent(s *snapshotv1.VolumeSnapshot, kind, reason, format string, a ...any) {
	object := reference(s)
	r.Events.Eventf(&object, kind, reason, format, a...)
}

func (r *snapshotter) contentClient() snapshottyped.VolumeSnapshotContentInterface {
	return r.Snapshots.SnapshotV1().VolumeSnapshotContents()
}

func (r *snapshotter) snapshotClient(s *snapshotv1.VolumeSnapshot) snapshottyped.VolumeSnapshotInterface {
	return r.Snapshots.SnapshotV1().VolumeSnapshots(s.Namespace)
}
