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

// unbind deletes the binding's secret and requests that the broker delete the binding, either
// because the object was deleted or to mitigate an orphan.
func (r *reconciler) unbind(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	status := &binding.Status
	mitigates := status.OrphanMitigationInProgress
	if status.AsyncOpInProgress && (mitigates || status.CurrentOperation == v1beta1.OperationUnbind) {
		return r.pollBinding(ctx, binding)
	}
	target, err := r.bindingTarget(ctx, binding)
	if err != nil {
		return r.waitForBinding(ctx, binding, err)
	}
	if err := r.ejectSecret(ctx, binding); err != nil {
		return err
	}
	client, closeIdle, err := r.connection(ctx, target.broker)
	if err != nil {
		return r.failUnbind(ctx, binding, target, err)
	}
	defer closeIdle()
	if !mitigates && status.CurrentOperation != v1beta1.OperationUnbind {
		now := metav1.Now()
		clearBindingOperation(status)
		status.CurrentOperation, status.OperationStartTime = v1beta1.OperationUnbind, &now
		setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, "UnbindingRequestInFlight", "Unbind request for ServiceBinding in-flight to Broker")
		if err := r.writeBinding(ctx, binding); err != nil {
			return err
		}
	}
	result, err := client.Delete(ctx, target.target)
	var response *osb.Error
	switch {
	case errors.As(err, &response) && response.Gone():
		return r.finishUnbind(ctx, binding)
	case err != nil:
		return r.failUnbind(ctx, binding, target, err)
	case result.Async:
		return r.acceptBinding(ctx, binding, bindingDeleteKind, result, "Unbinding", "The binding is being deleted asynchronously")
	}
	return r.finishUnbind(ctx, binding)
}

// finishUnbind records that the broker has deleted a binding.
func (r *reconciler) finishUnbind(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	status := &binding.Status
	r.schedule.forget(bindingDeleteKind, controller.Key{Namespace: binding.Namespace, Name: binding.Name})
	if status.OrphanMitigationInProgress {
		status.UnbindStatus = v1beta1.DeletionNotRequired
		clearBindingOperation(status)
		if err := r.writeBinding(ctx, binding); err != nil {
			return err
		}
		if delay := r.schedule.wait(bindingKind, binding); delay > 0 {
			return controller.RequeueAfter(delay)
		}
		return nil
	}
	status.ExternalProperties, status.UnbindStatus = nil, v1beta1.DeletionSucceeded
	status.ReconciledGeneration = binding.Generation
	clearBindingOperation(status)
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, "UnboundSuccessfully", "The binding was deleted successfully")
	if err := r.writeBinding(ctx, binding); err != nil {
		return err
	}
	r.emit(binding, "", "UnboundSuccessfully", "The binding was deleted successfully")
	return r.releaseBinding(ctx, binding)
}

// failUnbind records a failed unbind request and schedules the next attempt.
func (r *reconciler) failUnbind(ctx context.Context, binding *v1beta1.ServiceBinding, target *bindingTarget, err error) error {
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	status := &binding.Status
	message := fmt.Sprintf("Error unbinding from %s at %s: %s", target.offer, target.broker, classify(err).message)
	status.AsyncOpInProgress, status.LastOperation = false, nil
	if ready := apimeta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady); ready == nil || ready.Message != message {
		r.emit(binding, corev1.EventTypeWarning, "UnbindCallFailed", message)
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionUnknown, "UnbindCallFailed", message)
	delay := r.schedule.fail(bindingDeleteKind, binding, retryDelay(err))
	if err := r.writeBinding(ctx, binding); err != nil {
		return err
	}
	return controller.RequeueAfter(delay)
}
