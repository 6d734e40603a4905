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

// bind requests a binding and creates the credentials secret.
func (r *reconciler) bind(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	status := &binding.Status
	if status.CurrentOperation == "" && apimeta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFailed) {
		return nil // a binding's spec is immutable, so a retry would fail again
	}
	target, err := r.bindingTarget(ctx, binding)
	if err == nil {
		err = bindable(target)
	}
	if err != nil {
		return r.waitForBinding(ctx, binding, err)
	}
	p, err := r.parameters(ctx, binding.Namespace, binding.Spec.Parameters, binding.Spec.ParametersFrom, nil)
	if err != nil {
		return r.waitForBinding(ctx, binding, err)
	}
	profile, cluster, _, err := r.profile(ctx, binding.Namespace, target.instance.Name)
	if err != nil {
		return err
	}
	repeated := status.CurrentOperation == v1beta1.OperationBind
	client, closeIdle, err := r.connection(ctx, target.broker)
	if err != nil {
		return r.failBind(ctx, binding, target, err, repeated)
	}
	defer closeIdle()
	if !repeated {
		now := metav1.Now()
		status.CurrentOperation, status.OperationStartTime = v1beta1.OperationBind, &now
		status.InProgressProperties = &v1beta1.ServiceBindingPropertiesState{Parameters: p.public, ParameterChecksum: p.checksum, UserInfo: binding.Spec.UserInfo}
		status.UnbindStatus = v1beta1.DeletionRequired
		setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, "BindingRequestInFlight", "Binding request for ServiceBinding in-flight to Broker")
		if err := r.writeBinding(ctx, binding); err != nil {
			return err
		}
	}
	body := &osb.Bind{ServiceID: target.class.ExternalID, PlanID: target.target.PlanID, Context: profile, Parameters: p.values, AppGUID: cluster}
	body.Resource.AppGUID = cluster
	result, err := client.Bind(ctx, target.target, body, target.class.BindingRetrievable)
	switch {
	case err != nil:
		return r.failBind(ctx, binding, target, err, repeated)
	case result.Async:
		return r.acceptBinding(ctx, binding, bindingKind, result, "Binding", "The binding is being created asynchronously")
	}
	return r.finishBind(ctx, binding, result)
}

// bindable returns a *problem if an instance cannot be bound now.
func bindable(target *bindingTarget) error {
	instance := target.instance
	switch {
	case instance.DeletionTimestamp != nil:
		return waiting("ReferencesNonexistentInstance", "The instance %q is being deleted", instance.Name)
	case !target.bindable():
		return waiting("ErrorNonbindableServiceClass", "The binding references an instance of a non-bindable %s", target.offer)
	case instance.Status.AsyncOpInProgress:
		return waiting("ErrorAsyncOperationInProgress", "The instance %q has an operation in progress", instance.Name)
	case !apimeta.IsStatusConditionTrue(instance.Status.Conditions, v1beta1.ConditionReady):
		return waiting("ErrorInstanceNotReady", "The instance %q is not ready", instance.Name)
	}
	return nil
}

// finishBind creates the secret and records that the binding exists.
func (r *reconciler) finishBind(ctx context.Context, binding *v1beta1.ServiceBinding, result *osb.Result) error {
	if err := r.injectSecret(ctx, binding, result.Credentials); err != nil {
		// The broker has created the binding. The next attempt repeats the request, and the
		// response contains the credentials again.
		message := fmt.Sprintf("Error injecting bind result: %s", err)
		return r.showBindProblem(ctx, binding, "ErrorInjectingBindResult", message, err)
	}
	status := &binding.Status
	status.ExternalProperties = status.InProgressProperties
	status.ReconciledGeneration = binding.Generation
	clearBindingOperation(status)
	apimeta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionFailed)
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, "InjectedBindResult", "Injected bind result")
	r.schedule.forget(bindingKind, controller.Key{Namespace: binding.Namespace, Name: binding.Name})
	if err := r.writeBinding(ctx, binding); err != nil {
		return err
	}
	r.emit(binding, "", "InjectedBindResult", "Injected bind result")
	return nil
}

// showBindProblem records why a binding is not ready and schedules the next attempt.
func (r *reconciler) showBindProblem(ctx context.Context, binding *v1beta1.ServiceBinding, reason, message string, cause error) error {
	status := &binding.Status
	if ready := apimeta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady); ready == nil || ready.Message != message {
		r.emit(binding, corev1.EventTypeWarning, reason, message)
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	delay := r.schedule.fail(bindingKind, binding, retryDelay(cause))
	if err := r.writeBinding(ctx, binding); err != nil {
		return err
	}
	return controller.RequeueAfter(delay)
}

// failBind records a failed request. It decides whether to retry the request and whether the broker
// must first delete a binding that it might have created.
func (r *reconciler) failBind(ctx context.Context, binding *v1beta1.ServiceBinding, target *bindingTarget, err error, repeated bool) error {
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	p := classify(err)
	status := &binding.Status
	message := fmt.Sprintf("Error creating ServiceBinding to %s at %s: %s", target.offer, target.broker, p.message)
	if r.expired(status.OperationStartTime) {
		p.terminal, p.ambiguous = true, p.ambiguous || !p.definite
	}
	return r.failedBind(ctx, binding, p, message, err, repeated)
}

func (r *reconciler) failedBind(ctx context.Context, binding *v1beta1.ServiceBinding, p *problem, message string, cause error, repeated bool) error {
	status := &binding.Status
	reason := orElse(p.reason, "BindCallFailed")
	if p.terminal {
		setCondition(&status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, reason, message)
		status.ReconciledGeneration = binding.Generation
	}
	if p.definite && !repeated {
		status.UnbindStatus = v1beta1.DeletionNotRequired
	}
	status.AsyncOpInProgress, status.LastOperation = false, nil
	switch {
	case p.ambiguous:
		status.OrphanMitigationInProgress, status.UnbindStatus = true, v1beta1.DeletionRequired
	case p.terminal, p.definite:
		clearBindingOperation(status)
	}
	if err := r.showBindProblem(ctx, binding, reason, message, cause); !p.ambiguous {
		return err
	}
	return controller.RequeueAfter(r.timing.MinBackoff)
}

// pollBinding polls a binding's current asynchronous operation.
func (r *reconciler) pollBinding(ctx context.Context, binding *v1beta1.ServiceBinding) error {
	status := &binding.Status
	deletes := status.OrphanMitigationInProgress || status.CurrentOperation == v1beta1.OperationUnbind
	target, err := r.bindingTarget(ctx, binding)
	if err != nil {
		return r.waitForBinding(ctx, binding, err)
	}
	client, closeIdle, err := r.connection(ctx, target.broker)
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	if err != nil {
		return r.pollBindingAgain(ctx, binding, deletes, osb.State{Description: err.Error()})
	}
	defer closeIdle()
	state, err := client.LastOperation(ctx, target.target)
	var response *osb.Error
	switch {
	case errors.As(err, &response) && response.Gone() && deletes:
		return r.finishUnbind(ctx, binding)
	case err != nil && ctx.Err() != nil:
		return nil
	}
	state, err = r.limit(state, err, status.OperationStartTime, target.offer, deletes)
	switch {
	case err != nil:
		return r.pollBindingAgain(ctx, binding, deletes, osb.State{Description: err.Error(), RetryAfter: retryDelay(err)})
	case state.State == osb.InProgress:
		return r.pollBindingAgain(ctx, binding, deletes, *state)
	case deletes && state.State == osb.Succeeded:
		return r.finishUnbind(ctx, binding)
	case deletes:
		return r.failUnbind(ctx, binding, target, errors.New(orElse(state.Description, "the operation failed")))
	case state.State == osb.Failed:
		message := "Error creating binding: " + orElse(state.Description, "the operation failed")
		return r.failedBind(ctx, binding, &problem{terminal: true, ambiguous: true}, message, nil, true)
	}
	result, err := client.Binding(ctx, target.target)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		// The binding exists, so fetch it again later.
		return r.showBindProblem(ctx, binding, "FetchingBindingFailed", fmt.Sprintf("Could not do a GET on binding resource: %s", err), err)
	}
	return r.finishBind(ctx, binding, result)
}

// pollBindingAgain records the state of an operation and schedules the next poll.
func (r *reconciler) pollBindingAgain(ctx context.Context, binding *v1beta1.ServiceBinding, deletes bool, state osb.State) error {
	kind, reason, message := bindingKind, "Binding", "The binding is being created asynchronously"
	if deletes {
		kind, reason, message = bindingDeleteKind, "Unbinding", "The binding is being deleted asynchronously"
	}
	if state.Description != "" {
		message += " (" + state.Description + ")"
	}
	delay := r.schedule.poll(kind, binding, binding.Status.OperationStartTime, state.RetryAfter)
	ready := apimeta.FindStatusCondition(binding.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Message != message {
		setCondition(&binding.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
		if err := r.writeBinding(ctx, binding); err != nil {
			return err
		}
	}
	return controller.RequeueAfter(delay)
}
