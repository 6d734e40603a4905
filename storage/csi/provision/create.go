package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// cacheLagDelay is the delay after which a key is requeued if the cache is stale.
const cacheLagDelay = 100 * time.Millisecond

// cleanUpTimeout limits how long cleanUp retries a failing driver for a deleted claim.
const cleanUpTimeout = 10 * time.Minute

// reconcileClaim creates the volume for a claim, or cleans up if the claim no longer needs it.
func (p *provisioner) reconcileClaim(ctx context.Context, key controller.Key) error {
	objects, err := p.claims.ByIndex(byVolumeName, key.Name)
	if err != nil || len(objects) == 0 {
		return err
	}
	claim := objects[0].(*corev1.PersistentVolumeClaim)
	class, ok, err := p.shouldProvision(claim)
	if err != nil {
		return p.recordFailure(ctx, claim, err)
	}
	if !ok && !isPending(claim) {
		return nil
	}
	if !p.servesClaim(claim) {
		if ok && selectedNode(claim) == "" {
			return p.claimForNode(ctx, claim, class)
		}
		return nil
	}
	if complete, err := p.isComplete(ctx, claim); complete || err != nil {
		return err
	}
	if !ok {
		return p.cleanUp(ctx, claim)
	}
	return p.provision(ctx, claim, class)
}

// isComplete reports whether a PersistentVolume exists for the claim's volume. If it exists,
// isComplete also removes the pending finalizer. If the cache does not contain the
// volume of a pending claim, isComplete queries the API server, because the cache might be stale.
func (p *provisioner) isComplete(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	pv, err := p.volumes.Get(volumeName(claim))
	if apierrors.IsNotFound(err) && isPending(claim) {
		pv, err = p.Client.CoreV1().PersistentVolumes().Get(ctx, volumeName(claim), metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read PersistentVolume %q: %w", volumeName(claim), err)
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return true, fmt.Errorf("provision for claim \"%s/%s\": PersistentVolume %q belongs to another claim; delete it", claim.Namespace, claim.Name, pv.Name)
	}
	if !isPending(claim) {
		return true, nil
	}
	return true, p.clearPending(ctx, claim, nil)
}

// provision creates the volume and its PersistentVolume.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	plan, err := p.plan(ctx, claim, class)
	if err != nil {
		return p.recordFailure(ctx, claim, err)
	}
	if err := p.protectSource(ctx, plan.cloneSource); err != nil {
		return p.recordFailure(ctx, claim, err)
	}
	current, err := p.markPending(ctx, claim)
	if err != nil {
		return err
	}
	if current == nil {
		return nil // the claim was deleted, but is still in the cache
	}
	resp, err := p.createVolume(ctx, plan.request)
	if err != nil {
		return p.handleCreateError(ctx, current, class, err)
	}
	if err := plan.check(resp.GetVolume()); err != nil {
		return p.deleteMismatch(ctx, current, plan, resp.GetVolume(), err)
	}
	pv, err := p.persistentVolume(plan, resp.GetVolume())
	if err != nil {
		return p.deleteMismatch(ctx, current, plan, resp.GetVolume(), err)
	}
	if err := p.save(ctx, pv); err != nil {
		return p.recordFailure(ctx, current, err)
	}
	p.Events.Eventf(current, corev1.EventTypeNormal, "ProvisioningSucceeded", "PersistentVolume %s was created", pv.Name)
	return p.clearPending(ctx, current, nil)
}

// save creates the PersistentVolume. It accepts an existing PersistentVolume from an earlier
// attempt whose outcome was unknown.
func (p *provisioner) save(ctx context.Context, pv *corev1.PersistentVolume) error {
	_, err := p.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PersistentVolume %q: %w", pv.Name, err)
	}
	existing, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", pv.Name, err)
	}
	if existing.Spec.ClaimRef == nil || existing.Spec.ClaimRef.UID != pv.Spec.ClaimRef.UID {
		return fmt.Errorf("create PersistentVolume %q: it exists and belongs to another claim; delete it", pv.Name)
	}
	return nil
}

// handleCreateError handles a CreateVolume error. If the outcome is unknown, the claim stays
// pending and the call is retried.
func (p *provisioner) handleCreateError(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, cause error) error {
	reschedule := driver.CodeOf(cause) == codes.ResourceExhausted && selectedNode(claim) != "" && (hasDelayedBinding(class) || p.Node != "")
	if ctx.Err() != nil || !driver.HasNoEffect(cause) && !reschedule {
		return p.recordFailure(ctx, claim, cause)
	}
	var annotations object
	if reschedule {
		// Let the scheduler select another node, because that node might have enough capacity.
		annotations = object{nodeAnnotation: nil, oldNodeAnnotation: nil}
	}
	if err := p.clearPending(ctx, claim, annotations); err != nil {
		return p.recordFailure(ctx, claim, errors.Join(cause, err))
	}
	return p.recordFailure(ctx, claim, cause)
}

// deleteMismatch deletes a volume that does not match the request.
func (p *provisioner) deleteMismatch(ctx context.Context, claim *corev1.PersistentVolumeClaim, plan *plan, volume *csi.Volume, cause error) error {
	if volume.GetVolumeId() != "" {
		request := &csi.DeleteVolumeRequest{VolumeId: volume.GetVolumeId(), Secrets: plan.request.GetSecrets()}
		if err := p.deleteVolume(ctx, request); err != nil {
			return p.recordFailure(ctx, claim, errors.Join(cause, err))
		}
		if err := p.clearPending(ctx, claim, nil); err != nil {
			return p.recordFailure(ctx, claim, errors.Join(cause, err))
		}
	}
	return p.recordFailure(ctx, claim, cause)
}

// cleanUp deletes a volume that might have been created for a claim that no longer needs it. Only
// the driver can determine whether the volume exists, so cleanUp calls CreateVolume again, which
// returns the same volume, then deletes the volume. If the driver rejects the call with an error
// that guarantees that the call had no effect, no volume exists. After cleanUpTimeout, cleanUp
// accepts any final error, so that the claim is eventually deleted.
func (p *provisioner) cleanUp(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	current, err := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (current.UID != claim.UID || !isPending(current)) {
		return nil // the cache is stale: the claim no longer exists or is complete
	}
	if err != nil {
		return fmt.Errorf("read claim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	class, err := p.classes.Get(className(claim))
	if err != nil {
		return p.recordFailure(ctx, claim, fmt.Errorf(cleanUpFormat, pendingFinalizer, err))
	}
	plan, err := p.plan(ctx, claim, class)
	if err != nil {
		return p.recordFailure(ctx, claim, fmt.Errorf(cleanUpFormat, pendingFinalizer, err))
	}
	resp, err := p.createVolume(ctx, plan.request)
	if err != nil {
		expired := current.DeletionTimestamp != nil && time.Since(current.DeletionTimestamp.Time) > cleanUpTimeout
		if ctx.Err() == nil && (driver.HasNoEffect(err) || expired && driver.Final(err)) {
			return p.clearPending(ctx, claim, nil)
		}
		return p.recordFailure(ctx, claim, err)
	}
	request := &csi.DeleteVolumeRequest{VolumeId: resp.GetVolume().GetVolumeId(), Secrets: plan.request.GetSecrets()}
	if err := p.deleteVolume(ctx, request); err != nil {
		return p.recordFailure(ctx, claim, err)
	}
	return p.clearPending(ctx, claim, nil)
}

// cleanUpFormat is the format of the error that is returned if the driver cannot be called.
const cleanUpFormat = "clean up a volume that might have been created: %[2]w; fix the cause of the error, or remove the finalizer %[1]s if the volume does not exist"

// recordFailure records the error in an event and returns the error, so that the key is retried.
func (p *provisioner) recordFailure(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) error {
	if ctx.Err() == nil {
		p.Events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", cause.Error())
	}
	return cause
}
