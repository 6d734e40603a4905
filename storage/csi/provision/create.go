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

// behind is when a claim is looked at again that the cache is behind of.
const behind = 100 * time.Millisecond

// patience is how long a driver that fails is asked about a volume of a claim that was deleted.
const patience = 10 * time.Minute

// reconcileClaim makes the volume that a claim waits for, or clears up what was begun for a claim that no longer does.
func (p *provisioner) reconcileClaim(ctx context.Context, key controller.Key) error {
	objects, err := p.claims.ByIndex(byUID, key.Name)
	if err != nil || len(objects) == 0 {
		return err
	}
	claim := objects[0].(*corev1.PersistentVolumeClaim)
	class, wanted, err := p.wanted(claim)
	if err != nil {
		return p.failed(ctx, claim, err)
	}
	if !wanted && !isPending(claim) {
		return nil
	}
	if !p.here(claim) {
		if wanted && selectedNode(claim) == "" {
			return p.compete(ctx, claim, class)
		}
		return nil
	}
	if answered, err := p.answered(ctx, claim); answered || err != nil {
		return err
	}
	if !wanted {
		return p.abandon(ctx, claim)
	}
	return p.provision(ctx, claim, class)
}

// answered tells whether a PersistentVolume answers for the claim's volume, after which nothing is pending. Where there may be one that the cache does not have
// yet, the API server is asked.
func (p *provisioner) answered(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
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
		return true, fmt.Errorf("provision for claim \"%s/%s\": PersistentVolume %q belongs to something else; delete it", claim.Namespace, claim.Name, pv.Name)
	}
	if !isPending(claim) {
		return true, nil
	}
	return true, p.end(ctx, claim, nil)
}

// provision makes the volume and its PersistentVolume.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	plan, err := p.plan(ctx, claim, class)
	if err != nil {
		return p.failed(ctx, claim, err)
	}
	if err := p.protectSource(ctx, plan.cloned); err != nil {
		return p.failed(ctx, claim, err)
	}
	now, err := p.begin(ctx, claim)
	if err != nil {
		return err
	}
	if now == nil {
		return nil // deleted meanwhile, which the cache will tell
	}
	answer, err := p.createVolume(ctx, plan.request)
	if err != nil {
		return p.notCreated(ctx, now, class, err)
	}
	if err := plan.check(answer.GetVolume()); err != nil {
		return p.wrong(ctx, now, plan, answer.GetVolume(), err)
	}
	pv, err := p.persistentVolume(plan, answer.GetVolume())
	if err != nil {
		return p.wrong(ctx, now, plan, answer.GetVolume(), err)
	}
	if err := p.save(ctx, pv); err != nil {
		return p.failed(ctx, now, err)
	}
	p.Events.Eventf(now, corev1.EventTypeNormal, "ProvisioningSucceeded", "PersistentVolume %s was made", pv.Name)
	return p.end(ctx, now, nil)
}

// save stores the PersistentVolume. The one of an earlier try, whose outcome this process did not learn, is as good.
func (p *provisioner) save(ctx context.Context, pv *corev1.PersistentVolume) error {
	_, err := p.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PersistentVolume %q: %w", pv.Name, err)
	}
	there, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read PersistentVolume %q: %w", pv.Name, err)
	}
	if there.Spec.ClaimRef == nil || there.Spec.ClaimRef.UID != pv.Spec.ClaimRef.UID {
		return fmt.Errorf("create PersistentVolume %q: there is one that belongs to something else; delete it", pv.Name)
	}
	return nil
}

// notCreated decides what an error of CreateVolume means: without an outcome the claim stays pending and the call is repeated.
func (p *provisioner) notCreated(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, cause error) error {
	elsewhere := driver.CodeOf(cause) == codes.ResourceExhausted && selectedNode(claim) != "" && (delayed(class) || p.Node != "")
	if ctx.Err() != nil || !driver.Certain(cause) && !elsewhere {
		return p.failed(ctx, claim, cause)
	}
	var annotations object
	if elsewhere {
		annotations = object{nodeAnnotation: nil, oldNodeAnnotation: nil} // the pod may fit on another node
	}
	if err := p.end(ctx, claim, annotations); err != nil {
		return p.failed(ctx, claim, errors.Join(cause, err))
	}
	return p.failed(ctx, claim, cause)
}

// wrong removes a volume that is not what was asked for.
func (p *provisioner) wrong(ctx context.Context, claim *corev1.PersistentVolumeClaim, plan *plan, volume *csi.Volume, cause error) error {
	if volume.GetVolumeId() != "" {
		request := &csi.DeleteVolumeRequest{VolumeId: volume.GetVolumeId(), Secrets: plan.request.GetSecrets()}
		if err := p.deleteVolume(ctx, request); err != nil {
			return p.failed(ctx, claim, errors.Join(cause, err))
		}
		if err := p.end(ctx, claim, nil); err != nil {
			return p.failed(ctx, claim, errors.Join(cause, err))
		}
	}
	return p.failed(ctx, claim, cause)
}

// abandon removes what may have been made for a claim that does not want it any more. Only the driver knows: the same call again gives the same volume. There is
// none when the driver refuses it for a reason that makes that certain, or, since a claim must not stay for ever, for any reason after a while.
func (p *provisioner) abandon(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now, err := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (now.UID != claim.UID || !isPending(now)) {
		return nil // the cache lags behind: somebody answers for the volume since, or it is gone
	}
	if err != nil {
		return fmt.Errorf("read claim \"%s/%s\": %w", claim.Namespace, claim.Name, err)
	}
	class, err := p.classes.Get(className(claim))
	if err != nil {
		return p.failed(ctx, claim, fmt.Errorf(cannotClear, pending, err))
	}
	plan, err := p.plan(ctx, claim, class)
	if err != nil {
		return p.failed(ctx, claim, fmt.Errorf(cannotClear, pending, err))
	}
	answer, err := p.createVolume(ctx, plan.request)
	if err != nil {
		late := now.DeletionTimestamp != nil && time.Since(now.DeletionTimestamp.Time) > patience
		if ctx.Err() == nil && (driver.Certain(err) || late && driver.Final(err)) {
			return p.end(ctx, claim, nil)
		}
		return p.failed(ctx, claim, err)
	}
	request := &csi.DeleteVolumeRequest{VolumeId: answer.GetVolume().GetVolumeId(), Secrets: plan.request.GetSecrets()}
	if err := p.deleteVolume(ctx, request); err != nil {
		return p.failed(ctx, claim, err)
	}
	return p.end(ctx, claim, nil)
}

// cannotClear says what to do when the driver cannot even be asked.
const cannotClear = "clear up a volume that may have been made: %[2]w; put right what is missing, or remove the finalizer %[1]s if there is no such volume"

// failed tells the user, and returns the error, so that it is tried again.
func (p *provisioner) failed(ctx context.Context, claim *corev1.PersistentVolumeClaim, cause error) error {
	if ctx.Err() == nil {
		p.Events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", cause.Error())
	}
	return cause
}
