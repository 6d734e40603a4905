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

// syncContent updates a VolumeSnapshotContent's status from the driver. If the snapshot does not
// exist, syncContent creates it.
func (r *snapshotter) syncContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	if contentReady(c) && c.Annotations[beingCreated] == "" {
		return c, nil
	}
	c, err := r.prepareContent(ctx, c)
	if err != nil {
		return nil, err
	}
	response, err := r.querySnapshot(ctx, c)
	if err != nil {
		return nil, r.recordFailure(ctx, c, err)
	}
	return r.recordState(ctx, c, response)
}

// prepareContent verifies that a VolumeSnapshotContent exists and is not being deleted, and adds
// its finalizer. If CreateSnapshot is about to be called, prepareContent also adds the beingCreated
// annotation. These steps are repeated before each retry, because the cache might contain a deleted
// VolumeSnapshotContent, and a snapshot created for it would be leaked.
func (r *snapshotter) prepareContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	desired := c.DeepCopy()
	if !slices.Contains(desired.Finalizers, contentFinalizer) {
		desired.Finalizers = append(desired.Finalizers, contentFinalizer)
	}
	if handleOf(c) == "" && c.Annotations[beingCreated] == "" {
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, beingCreated, yes)
	}
	if !equality.Semantic.DeepEqual(c, desired) {
		return r.updateContent(ctx, desired)
	}
	current, err := r.getContent(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	if current == nil || current.UID != c.UID || current.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(snapshotv1.Resource("volumesnapshotcontents"), c.Name, fmt.Errorf("it is being deleted"))
	}
	return current, nil
}

// querySnapshot calls the driver to create a snapshot or to query its state.
func (r *snapshotter) querySnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*csi.Snapshot, error) {
	id := handleOf(c)
	switch {
	case id == "":
		return r.createSnapshot(ctx, c)
	case r.Description.Can(csi.ControllerServiceCapability_RPC_GET_SNAPSHOT):
		secrets, err := r.secrets(ctx, c, parameters.SnapshotterList)
		if err != nil {
			return nil, err
		}
		resp, err := r.Driver.Controller().GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: id, Secrets: secrets})
		return resp.GetSnapshot(), err
	case r.Description.Can(csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS):
		return r.listSnapshot(ctx, c, id)
	case c.Spec.Source.VolumeHandle != nil:
		return r.createSnapshot(ctx, c) // the call is idempotent and returns the state
	default: // the driver cannot return the state, so trust the object's creator
		return &csi.Snapshot{SnapshotId: id, ReadyToUse: true}, nil
	}
}

func (r *snapshotter) createSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*csi.Snapshot, error) {
	secrets, err := r.deletionSecrets(ctx, c)
	if err != nil {
		return nil, err
	}
	var driverParams map[string]string
	if c.Spec.VolumeSnapshotClassName != nil {
		// If the class no longer exists, a call that only queries the outcome of an earlier call
		// still works, because the snapshot is identified by name.
		if class, err := r.classes.Get(*c.Spec.VolumeSnapshotClassName); err == nil {
			if driverParams, err = parameters.ForDriver(class.Parameters); err != nil {
				return nil, userError{err}
			}
		}
	}
	resp, err := r.Driver.Controller().CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
		Name: "snapshot-" + string(c.Spec.VolumeSnapshotRef.UID), SourceVolumeId: *c.Spec.Source.VolumeHandle, Secrets: secrets, Parameters: driverParams,
	})
	if err == nil && resp.GetSnapshot().GetSnapshotId() == "" {
		return nil, userErrorf("CSI driver %q created a snapshot without returning its ID", r.driver)
	}
	return resp.GetSnapshot(), err
}

// listSnapshot queries one snapshot with ListSnapshots.
func (r *snapshotter) listSnapshot(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, id string) (*csi.Snapshot, error) {
	secrets, err := r.secrets(ctx, c, parameters.SnapshotterList)
	if err != nil {
		return nil, err
	}
	resp, err := r.Driver.Controller().ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: id, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	for _, entry := range resp.GetEntries() {
		if entry.GetSnapshot().GetSnapshotId() == id {
			return entry.GetSnapshot(), nil
		}
	}
	return nil, userErrorf("snapshot %q is unknown to CSI driver %q", id, r.driver)
}

// secrets returns the secrets that the VolumeSnapshotContent's class selects for an operation, or
// nil if the class no longer exists.
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
		return nil, userError{err}
	}
	return parameters.Fetch(ctx, r.Client, secret)
}

// deletionSecrets returns the secrets that a VolumeSnapshotContent references. They are used for
// both creation and deletion.
func (r *snapshotter) deletionSecrets(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (map[string]string, error) {
	name, namespace := c.Annotations[secretName], c.Annotations[secretNamespace]
	if name == "" || namespace == "" {
		return nil, nil
	}
	return parameters.Fetch(ctx, r.Client, &corev1.SecretReference{Name: name, Namespace: namespace})
}

// recordState writes the driver's response to the VolumeSnapshotContent. It first writes the
// status, which contains the ID, then removes the beingCreated annotation.
func (r *snapshotter) recordState(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, snap *csi.Snapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	id, size, ready := snap.GetSnapshotId(), snap.GetSizeBytes(), snap.GetReadyToUse()
	status := &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &id, RestoreSize: &size, ReadyToUse: &ready}
	if snap.GetCreationTime() != nil {
		creationTime := snap.GetCreationTime().AsTime().UnixNano()
		status.CreationTime = &creationTime
	}
	var err error
	if !equality.Semantic.DeepEqual(c.Status, status) {
		c = c.DeepCopy()
		c.Status = status
		if c, err = r.contentClient().UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("update VolumeSnapshotContent status: %w", err)
		}
	}
	return r.clearBeingCreated(ctx, c)
}

// clearBeingCreated removes the beingCreated annotation after the outcome of CreateSnapshot is
// known.
func (r *snapshotter) clearBeingCreated(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	if c.Annotations[beingCreated] == "" {
		return c, nil
	}
	c = c.DeepCopy()
	delete(c.Annotations, beingCreated)
	return r.updateContent(ctx, c)
}

// recordFailure reports a driver error. If no snapshot was created, it also removes the
// beingCreated annotation.
func (r *snapshotter) recordFailure(ctx context.Context, c *snapshotv1.VolumeSnapshotContent, cause error) error {
	if handleOf(c) != "" || !driver.HasNoEffect(cause) {
		return r.reportContent(ctx, c, cause)
	}
	c, err := r.clearBeingCreated(ctx, c)
	if err != nil {
		return err
	}
	return r.reportContent(ctx, c, cause)
}

func (r *snapshotter) updateContent(ctx context.Context, c *snapshotv1.VolumeSnapshotContent) (*snapshotv1.VolumeSnapshotContent, error) {
	updated, err := r.contentClient().Update(ctx, c, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update VolumeSnapshotContent %q: %w", c.Name, err)
	}
	return updated, nil
}
