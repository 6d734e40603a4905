package catalogcontroller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// deleteInstance requests that the broker delete an instance, either because the object was deleted
// or to mitigate an orphan. It does not wait for an operation in progress, because the broker
// decides whether it can interrupt that operation.
func (r *reconciler) deleteInstance(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	status := &instance.Status
	mitigates := status.OrphanMitigationInProgress
	if status.AsyncOpInProgress && (mitigates || status.CurrentOperation == v1beta1.OperationDeprovision) {
		return r.pollInstance(ctx, instance)
	}
	if status.DeprovisionStatus == v1beta1.DeletionFailed && status.ObservedGeneration == instance.Generation {
		return nil // a change of spec.updateRequests starts another attempt
	}
	offer, err := r.resolve(ctx, instance)
	if err != nil {
		return r.waitForObject(ctx, instance, err)
	}
	plan := recordedPlan(status.ExternalProperties, recordedPlan(status.InProgressProperties, offer.plan.ExternalID))
	client, closeIdle, err := r.connection(ctx, offer.broker)
	if err != nil {
		return r.failDeletion(ctx, instance, offer, err)
	}
	defer closeIdle()
	if !mitigates && status.CurrentOperation != v1beta1.OperationDeprovision {
		properties := status.ExternalProperties
		if properties == nil {
			properties = offer.properties(instance, parameters{}, "")
		}
		err := r.record(ctx, instance, v1beta1.OperationDeprovision, properties,
			"DeprovisionRequestInFlight", "Deprovision request for ServiceInstance in-flight to Broker")
		if err != nil {
			return err
		}
	}
	target := offer.target(instance)
	target.PlanID = plan
	result, err := client.Delete(ctx, target)
	var response *osb.Error
	switch {
	case errors.As(err, &response) && response.Gone():
		return r.finishDeletion(ctx, instance)
	case err != nil:
		return r.failDeletion(ctx, instance, offer, err)
	case result.Async:
		return r.accept(ctx, instance, instanceDeleteKind, result, "Deprovisioning", "The instance is being deprovisioned asynchronously")
	}
	return r.finishDeletion(ctx, instance)
}

// finishDeletion records that the broker has deleted an instance.
func (r *reconciler) finishDeletion(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	status := &instance.Status
	key := controller.Key{Namespace: instance.Namespace, Name: instance.Name}
	r.schedule.forget(instanceDeleteKind, key)
	if !status.OrphanMitigationInProgress {
		status.ExternalProperties, status.ProvisionStatus, status.DeprovisionStatus = nil, v1beta1.NotProvisioned, v1beta1.DeletionSucceeded
		status.ReconciledGeneration = status.ObservedGeneration
		clearOperation(status)
		setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, "DeprovisionedSuccessfully", "The instance was deprovisioned successfully")
		if err := r.writeInstance(ctx, instance); err != nil {
			return err
		}
		r.emit(instance, "", "DeprovisionedSuccessfully", "The instance was deprovisioned successfully")
		return r.releaseInstance(ctx, instance)
	}
	status.DeprovisionStatus = v1beta1.DeletionSucceeded
	clearOperation(status)
	apimeta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionOrphanMitigation)
	if err := r.writeInstance(ctx, instance); err != nil {
		return err
	}
	r.emit(instance, "", "OrphanMitigationSuccessful", "Orphan mitigation was completed successfully")
	if delay := r.schedule.wait(instanceKind, instance); delay > 0 {
		return controller.RequeueAfter(delay)
	}
	return nil
}

// failDeletion records a failed deletion request. The request is retried until the retry timeout is
// reached.
func (r *reconciler) failDeletion(ctx context.Context, instance *v1beta1.ServiceInstance, offer *offer, err error) error {
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	p := classify(err)
	status := &instance.Status
	message := fmt.Sprintf("Error deprovisioning, the request will be retried automatically: %s at %s: %s", offer, offer.broker, p.message)
	reason := "ErrorCallingDeprovision"
	var response *osb.Error
	if errors.As(err, &response) {
		reason = "DeprovisionCallFailed"
	}
	if status.OrphanMitigationInProgress {
		reason = "OrphanMitigationFailed"
	}
	// If an asynchronous operation fails, request it again.
	status.AsyncOpInProgress, status.LastOperation = false, nil
	if r.expired(status.OperationStartTime) {
		message = fmt.Sprintf("Error deprovisioning: %s at %s: %s; increase spec.updateRequests to try again, "+
			"or abandon the instance with the annotation %s=true", offer, offer.broker, p.message, v1beta1.AbandonAnnotation)
		status.DeprovisionStatus = v1beta1.DeletionFailed
		clearOperation(status)
		setCondition(&status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, reason, message)
	}
	ready := apimeta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Message != message {
		r.emit(instance, corev1.EventTypeWarning, reason, message)
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionUnknown, reason, message)
	delay := r.schedule.fail(instanceDeleteKind, instance, retryDelay(err))
	if err := r.writeInstance(ctx, instance); err != nil {
		return err
	}
	return controller.RequeueAfter(delay)
}
