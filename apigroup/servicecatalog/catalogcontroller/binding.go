package catalogcontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

const (
	bindingKind       = "binding"
	bindingDeleteKind = "binding deletion"
)

// reconcileBinding performs the next step for a binding. It reads the binding from the API server,
// because acting on a stale copy could repeat a request that a later request has superseded.
func (r *reconciler) reconcileBinding(ctx context.Context, key controller.Key) error {
	binding, err := r.client.Bindings(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		r.schedule.forget(bindingKind, key)
		r.schedule.forget(bindingDeleteKind, key)
		return ignoreNotFound(err)
	}
	deleting := binding.DeletionTimestamp != nil
	if deleting && !slices.Contains(binding.Finalizers, v1beta1.Finalizer) {
		return nil
	}
	if deleting && binding.Annotations[v1beta1.AbandonAnnotation] == "true" {
		return r.abandonBinding(ctx, binding, "the annotation "+v1beta1.AbandonAnnotation)
	}
	status := &binding.Status
	kind := bindingKind
	if deleting || status.OrphanMitigationInProgress {
		kind = bindingDeleteKind
	}
	if delay := r.schedule.wait(kind, binding); delay > 0 {
		return controller.RequeueAfter(delay)
	}
	switch {
	case status.OrphanMitigationInProgress:
		return r.unbind(ctx, binding)
	case deleting && (status.UnbindStatus == v1beta1.DeletionNotRequired || status.UnbindStatus == v1beta1.DeletionSucceeded || status.UnbindStatus == ""):
		return r.releaseBinding(ctx, binding)
	case deleting:
		return r.unbind(ctx, binding)
	case status.AsyncOpInProgress:
		return r.pollBinding(ctx, binding)
	case status.CurrentOperation == "" && status.ReconciledGeneration == binding.Generation:
		return nil
	}
	return r.bind(ctx, binding)
}

// writeBinding writes the status and replaces binding with the stored object.
func (r *reconciler) writeBinding(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	binding.Status.LastConditionState = stateOf(binding.Status.Conditions)
	updated, err := r.client.Bindings(binding.Namespace).UpdateStatus(ctx, binding, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update binding status: %w", err)
	}
	*binding = *updated
	return nil
}

// abandonBinding removes a binding without contacting its broker.
func (r *reconciler) abandonBinding(ctx context.Context, binding *v1beta1.ServiceBinding, because string) error {
	if err := r.ejectSecret(ctx, binding); err != nil {
		return err
	}
	r.emit(binding, corev1.EventTypeWarning, "Abandoned", "The binding is deleted without its broker because of "+because+
		"; its credentials can remain valid at the broker, for the ID "+binding.Spec.ExternalID)
	return r.releaseBinding(ctx, binding)
}

// releaseBinding removes the finalizer, so that the API server can delete the binding.
func (r *reconciler) releaseBinding(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	binding.Finalizers = slices.DeleteFunc(binding.Finalizers, func(f string) bool { return f == v1beta1.Finalizer })
	_, err := r.client.Bindings(binding.Namespace).Update(ctx, binding, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// bindingTarget holds the objects that a binding's requests require.
type bindingTarget struct {
	*offer
	instance *v1beta1.ServiceInstance
	target   osb.Target
}

// bindingTarget returns a binding's instance with its class, plan and broker. If one of them is
// missing, the error is a *problem.
func (r *reconciler) bindingTarget(ctx context.Context, binding *v1beta1.ServiceBinding) (*bindingTarget, error) {
	instance, err := r.client.Instances(binding.Namespace).Get(ctx, binding.Spec.InstanceRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, missing(err, "ReferencesNonexistentInstance", "ServiceInstance", binding.Spec.InstanceRef.Name)
	}
	if classKey(instance) == "" {
		return nil, waiting("ErrorInstanceRefsUnresolved", "The class and the plan of the instance %q are not resolved yet", instance.Name)
	}
	offer, err := r.resolve(ctx, instance)
	if err != nil {
		return nil, err
	}
	target := osb.Target{
		Instance: instance.Spec.ExternalID, Binding: binding.Spec.ExternalID, ServiceID: offer.class.ExternalID,
		PlanID: recordedPlan(instance.Status.ExternalProperties, offer.plan.ExternalID), User: binding.Spec.UserInfo,
	}
	if binding.Status.LastOperation != nil {
		target.Operation = *binding.Status.LastOperation
	}
	return &bindingTarget{offer, instance, target}, nil
}

// waitForBinding records that a binding is waiting for another object and schedules a recheck.
func (r *reconciler) waitForBinding(ctx context.Context, binding *v1beta1.ServiceBinding, err error) error {
	var p *problem
	if !errors.As(err, &p) {
		return err
	}
	if binding.DeletionTimestamp != nil && (p.reason == "ReferencesNonexistentInstance" || r.isOrphaned(ctx, binding.Namespace, binding, p)) {
		return r.abandonBinding(ctx, binding, "the deletion of its instance or its broker")
	}
	ready := apimeta.FindStatusCondition(binding.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Reason != p.reason || ready.Message != p.message {
		setCondition(&binding.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, p.reason, p.message)
		r.emit(binding, corev1.EventTypeWarning, p.reason, p.message)
		if err := r.writeBinding(ctx, binding); err != nil {
			return err
		}
	}
	return controller.RequeueAfter(r.timing.RecheckInterval)
}

// clearBindingOperation removes the current operation from the status.
func clearBindingOperation(status *v1beta1.ServiceBindingStatus) {
	status.CurrentOperation, status.OperationStartTime, status.InProgressProperties = "", nil, nil
	status.AsyncOpInProgress, status.LastOperation, status.OrphanMitigationInProgress = false, nil, false
}

// acceptBinding records that the broker has accepted an asynchronous operation.
func (r *reconciler) acceptBinding(ctx context.Context, binding *v1beta1.ServiceBinding, kind string, result *osb.Result, reason, message string) error {
	status := &binding.Status
	status.AsyncOpInProgress, status.LastOperation = true, nil
	if result.Operation != "" {
		status.LastOperation = &result.Operation
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	delay := r.schedule.poll(kind, binding, status.OperationStartTime, 0)
	if err := r.writeBinding(ctx, binding); err != nil {
		return err
	}
	r.emit(binding, "", reason, message)
	return controller.RequeueAfter(delay)
}
