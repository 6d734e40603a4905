package snapshot

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/parameters"
)

// take brings a content's status up to date with the driver, which it asks to take the snapshot if it has not.
func (r *snapshotter) take(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	if contentReady(c) && c.Annotations[beingCreated] == "" {
		return c, nil
	}
	c, err := r.claimContent(ctx, c)
	if err != nil {
		return nil, err
	}
	answer, err := r.ask(ctx, c)
	if err != nil {
		return nil, r.failed(ctx, c, err)
	}
	return r.note(ctx, c, answer)
}

// claimContent makes sure that a content exists, is not being deleted and has its finalizer, and marks it when CreateSnapshot is next. After
// a retry too: the cache may show a content that is long gone, and a snapshot taken for it would be found by nobody.
func (r *snapshotter) claimContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	wanted := c.DeepCopy()
	if !slices.Contains(wanted.Finalizers, contentFinalizer) {
		wanted.Finalizers = append(wanted.Finalizers, contentFinalizer)
	}
	if handle(c) == "" && c.Annotations[beingCreated] == "" {
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, beingCreated, yes)
	}
	if !equality.Semantic.DeepEqual(c, wanted) {
		return r.updateContent(ctx, wanted)
	}
	now, err := r.live(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	if now == nil || now.UID != c.UID || now.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(snapshotv1.Resource("volumesnapshotcontents"), c.Name, fmt.Errorf("it is being deleted"))
	}
	return now, nil
}

// ask calls the driver: for a new snapshot, or for the state of one.
func (r *snapshotter) ask(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*csi.Snapshot, error) {
	known := handle(c)
	switch {
	case known == "":
		return r.createSnapshot(ctx, c)
	case r.Description.Can(csi.ControllerServiceCapability_RPC_GET_SNAPSHOT):
		secrets, err := r.secrets(ctx, c, parameters.SnapshotterList)
		if err != nil {
			return nil, err
		}
		answer, err := r.Driver.Controller().GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: known, Secrets: secrets})
		return answer.GetSnapshot(), err
	case r.Description.Can(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS):
		return r.listSnapshot(ctx, c, known)
	case c.Spec.Source.VolumeHandle != nil:
		return r.createSnapshot(ctx, c) // once more: the call is idempotent and tells the state
	default: // the driver cannot be asked; whoever made the content knows
		return &csi.Snapshot{SnapshotId: known, ReadyToUse: true}, nil
	}
}

func (r *snapshotter) createSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*csi.Snapshot, error) {
	secrets, err := r.deletionSecrets(ctx, c)
	if err != nil {
		return nil, err
	}
	var passed map[string]string
	if c.Spec.VolumeSnapshotClassName != nil {
		// The class may be gone when only the outcome of an earlier call is asked for: the name finds the snapshot.
		if class, err := r.classes.Get(*c.Spec.VolumeSnapshotClassName); err == nil {
			if passed, err = parameters.Passed(class.Parameters); err != nil {
				return nil, problem{err}
			}
		}
	}
	answer, err := r.Driver.Controller().CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
		Name: "snapshot-" + string(c.Spec.VolumeSnapshotRef.UID), SourceVolumeId: *c.Spec.Source.VolumeHandle, Secrets: secrets, Parameters: passed,
	})
	if err == nil && answer.GetSnapshot().GetSnapshotId() == "" {
		return nil, problemf("CSI driver %q took a snapshot and gave no ID for it", r.driver)
	}
	return answer.GetSnapshot(), err
}

// listSnapshot finds one snapshot in the driver's list.
func (r *snapshotter) listSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, known string) (*csi.Snapshot, error) {
	secrets, err := r.secrets(ctx, c, parameters.SnapshotterList)
	if err != nil {
		return nil, err
	}
	answer, err := r.Driver.Controller().ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: known, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	for _, entry := range answer.GetEntries() {
		if entry.GetSnapshot().GetSnapshotId() == known {
			return entry.GetSnapshot(), nil
		}
	}
	return nil, problemf("CSI driver %q knows no snapshot %q", r.driver, known)
}

// secrets are what the class of a content chooses for an operation; none when the class is gone.
func (r *snapshotter) secrets(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, operation parameters.Operation) (map[string]string, error) {
	if c.Spec.VolumeSnapshotClassName == nil {
		return nil, nil
	}
	class, err := r.classes.Get(*c.Spec.VolumeSnapshotClassName)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ref := c.Spec.VolumeSnapshotRef
	snapshot := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	secret, err := parameters.Secret(class.Parameters, operation, secretValues(c.Name, snapshot))
	if err != nil {
		return nil, problem{err}
	}
	return parameters.Fetch(ctx, r.Client, secret)
}

// deletionSecrets are those that a content names, for taking as well as for deleting.
func (r *snapshotter) deletionSecrets(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (map[string]string, error) {
	name, namespace := c.Annotations[secretName], c.Annotations[secretNamespace]
	if name == "" || namespace == "" {
		return nil, nil
	}
	return parameters.Fetch(ctx, r.Client, &corev1.SecretReference{Name: name, Namespace: namespace})
}

// note writes the driver's answer into the content: first the status, which makes it findable, then away with the mark.
func (r *snapshotter) note(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, answer *csi.Snapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	id, size, ready := answer.GetSnapshotId(), answer.GetSizeBytes(), answer.GetReadyToUse()
	status := &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &id, RestoreSize: &size, ReadyToUse: &ready}
	if answer.GetCreationTime() != nil {
		taken := answer.GetCreationTime().AsTime().UnixNano()
		status.CreationTime = &taken
	}
	var err error
	if !equality.Semantic.DeepEqual(c.Status, status) {
		c = c.DeepCopy()
		c.Status = status
		if c, err = r.contentClient().UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("write status of VolumeSnapshotContent: %w", err)
		}
	}
	return r.unmark(ctx, c)
}

// unmark says that the outcome of CreateSnapshot is known.
func (r *snapshotter) unmark(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	if c.Annotations[beingCreated] == "" {
		return c, nil
	}
	c = c.DeepCopy()
	delete(c.Annotations, beingCreated)
	return r.updateContent(ctx, c)
}

// failed notes what the driver said. An error after which surely nothing was made takes the mark away.
func (r *snapshotter) failed(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, cause error) error {
	if handle(c) != "" || !driver.Certain(cause) {
		return r.reportContent(ctx, c, cause)
	}
	c, err := r.unmark(ctx, c)
	if err != nil {
		return err
	}
	return r.reportContent(ctx, c, cause)
}

func (r *snapshotter) updateContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	written, err := r.contentClient().Update(ctx, c, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update VolumeSnapshotContent %q: %w", c.Name, err)
	}
	return written, nil
}
