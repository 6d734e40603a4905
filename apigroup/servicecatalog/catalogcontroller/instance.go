package catalogcontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// Kinds of schedule entries. Deletions have separate kinds, so that a deletion does not wait for
// the next attempt of a failed operation.
const (
	instanceKind       = "instance"
	instanceDeleteKind = "instance deletion"
)

// reconcileInstance performs the next step for an instance. It reads the instance from the API
// server, because acting on a stale copy could repeat a request that a later request has
// superseded.
func (r *reconciler) reconcileInstance(ctx context.Context, key controller.Key) error {
	instance, err := r.client.Instances(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		r.forgetInstance(key)
		return ignoreNotFound(err)
	}
	deleting := instance.DeletionTimestamp != nil
	if deleting && !slices.Contains(instance.Finalizers, v1beta1.Finalizer) {
		return nil
	}
	if deleting && instance.Annotations[v1beta1.AbandonAnnotation] == "true" {
		return r.abandonInstance(ctx, instance, "the annotation "+v1beta1.AbandonAnnotation)
	}
	if deleting {
		if blocked, err := r.blockedByBindings(ctx, instance); blocked || err != nil {
			return err
		}
	}
	status := &instance.Status
	kind := instanceKind
	if deleting || status.OrphanMitigationInProgress {
		kind = instanceDeleteKind
	}
	if delay := r.schedule.wait(kind, instance); delay > 0 {
		return controller.RequeueAfter(delay)
	}
	switch {
	case status.OrphanMitigationInProgress:
		return r.deleteInstance(ctx, instance)
	case deleting && (status.DeprovisionStatus == v1beta1.DeletionNotRequired || status.DeprovisionStatus == v1beta1.DeletionSucceeded || status.DeprovisionStatus == ""):
		return r.releaseInstance(ctx, instance)
	case deleting:
		return r.deleteInstance(ctx, instance)
	case status.AsyncOpInProgress:
		return r.pollInstance(ctx, instance)
	case status.CurrentOperation == "" && status.ReconciledGeneration == instance.Generation:
		return nil
	case status.ProvisionStatus != v1beta1.Provisioned:
		return r.provision(ctx, instance)
	}
	return r.updateInstance(ctx, instance)
}

// writeInstance writes the status and replaces instance with the stored object.
func (r *reconciler) writeInstance(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	instance.Status.LastConditionState = stateOf(instance.Status.Conditions)
	updated, err := r.client.Instances(instance.Namespace).UpdateStatus(ctx, instance, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update instance status: %w", err)
	}
	*instance = *updated
	return nil
}

// blockedByBindings reports whether an instance that is being deleted still has bindings, which
// must be deleted first.
func (r *reconciler) blockedByBindings(ctx context.Context, instance *v1beta1.ServiceInstance) (bool, error) {
	list, err := r.client.Bindings(instance.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.instanceRef.name=" + instance.Name})
	if err != nil {
		return false, fmt.Errorf("list bindings: %w", err)
	}
	exists := slices.ContainsFunc(list.Items, func(binding v1beta1.ServiceBinding) bool { return binding.Spec.InstanceRef.Name == instance.Name })
	if !exists {
		return false, nil
	}
	const message = "All associated ServiceBindings must be removed before this ServiceInstance can be deleted"
	if ready := apimeta.FindStatusCondition(instance.Status.Conditions, v1beta1.ConditionReady); ready != nil && ready.Message == message {
		return true, nil
	}
	setCondition(&instance.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, "DeprovisionBlockedByExistingCredentials", message)
	r.emit(instance, corev1.EventTypeWarning, "DeprovisionBlockedByExistingCredentials", message)
	return true, r.writeInstance(ctx, instance)
}

// abandonInstance removes an instance without contacting its broker.
func (r *reconciler) abandonInstance(ctx context.Context, instance *v1beta1.ServiceInstance, because string) error {
	r.emit(instance, corev1.EventTypeWarning, "Abandoned", "The instance is deleted without its broker because of "+because+
		"; its resources can continue to exist at the broker, with the ID "+instance.Spec.ExternalID)
	return r.releaseInstance(ctx, instance)
}

// releaseInstance removes the finalizer, so that the API server can delete the instance.
func (r *reconciler) releaseInstance(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	instance.Finalizers = slices.DeleteFunc(instance.Finalizers, func(f string) bool { return f == v1beta1.Finalizer })
	_, err := r.client.Instances(instance.Namespace).Update(ctx, instance, metav1.UpdateOptions{})
	r.forgetInstance(controller.Key{Namespace: instance.Namespace, Name: instance.Name})
	return ignoreNotFound(err)
}

func (r *reconciler) forgetInstance(key controller.Key) {
	r.schedule.forget(instanceKind, key)
	r.schedule.forget(instanceDeleteKind, key)
}

// waitForObject records that an instance is waiting for another object and schedules a recheck.
func (r *reconciler) waitForObject(ctx context.Context, instance *v1beta1.ServiceInstance, err error) error {
	var p *problem
	if !errors.As(err, &p) {
		return err
	}
	if instance.DeletionTimestamp != nil && r.isOrphaned(ctx, instance.Namespace, instance, p) {
		return r.abandonInstance(ctx, instance, "the deletion of its project, because its broker does not exist")
	}
	if err := r.showProblem(ctx, instance, p.reason, p.message); err != nil {
		return err
	}
	return controller.RequeueAfter(r.timing.RecheckInterval)
}

// showProblem sets the Ready condition to false and emits an event if the condition changes.
func (r *reconciler) showProblem(ctx context.Context, instance *v1beta1.ServiceInstance, reason, message string) error {
	ready := apimeta.FindStatusCondition(instance.Status.Conditions, v1beta1.ConditionReady)
	if ready != nil && ready.Reason == reason && ready.Message == message && ready.Status == metav1.ConditionFalse {
		return nil
	}
	setCondition(&instance.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	r.emit(instance, corev1.EventTypeWarning, reason, message)
	return r.writeInstance(ctx, instance)
}

// isOrphaned reports whether an object was deleted more than AbandonDelay ago, its broker does not
// exist and its namespace is being deleted. In this state, no user would recreate the broker to
// complete the deletion.
func (r *reconciler) isOrphaned(ctx context.Context, namespace string, object metav1.Object, p *problem) bool {
	if p.reason != "ReferencesNonexistentBroker" && p.reason != "ReferencesNonexistentServiceClass" && p.reason != "ReferencesNonexistentServicePlan" {
		return false
	}
	if time.Since(object.GetDeletionTimestamp().Time) < r.timing.AbandonDelay {
		return false
	}
	ns, err := r.kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	return err == nil && ns.DeletionTimestamp != nil
}

// target returns the identifiers of an instance in broker requests.
func (o *offer) target(instance *v1beta1.ServiceInstance) osb.Target {
	target := osb.Target{
		Instance: instance.Spec.ExternalID, ServiceID: o.class.ExternalID, PlanID: o.plan.ExternalID, User: instance.Spec.UserInfo,
	}
	if instance.Status.LastOperation != nil {
		target.Operation = *instance.Status.LastOperation
	}
	return target
}

// recordedPlan returns the plan ID in properties, or fallback.
func recordedPlan(properties *v1beta1.ServiceInstancePropertiesState, fallback string) string {
	switch {
	case properties == nil:
		return fallback
	case properties.ClusterServicePlanExternalID != "":
		return properties.ClusterServicePlanExternalID
	case properties.ServicePlanExternalID != "":
		return properties.ServicePlanExternalID
	}
	return fallback
}

// recordedMaintenance returns the maintenance version in properties, or "".
func recordedMaintenance(properties *v1beta1.ServiceInstancePropertiesState) string {
	if properties == nil {
		return ""
	}
	return properties.MaintenanceVersion
}

// properties returns the properties that a request sends.
func (o *offer) properties(instance *v1beta1.ServiceInstance, p parameters, maintenance string) *v1beta1.ServiceInstancePropertiesState {
	state := &v1beta1.ServiceInstancePropertiesState{
		Parameters: p.public, ParameterChecksum: p.checksum, MaintenanceVersion: maintenance, UserInfo: instance.Spec.UserInfo,
	}
	if o.clusterScoped {
		state.ClusterServicePlanExternalName, state.ClusterServicePlanExternalID = o.plan.ExternalName, o.plan.ExternalID
	} else {
		state.ServicePlanExternalName, state.ServicePlanExternalID = o.plan.ExternalName, o.plan.ExternalID
	}
	return state
}

// record writes the start of an operation to the status before the request is sent to the broker.
func (r *reconciler) record(ctx context.Context, instance *v1beta1.ServiceInstance, operation v1beta1.InstanceOperation,
	properties *v1beta1.ServiceInstancePropertiesState, reason, message string) error {
	now := metav1.Now()
	status := &instance.Status
	status.CurrentOperation, status.OperationStartTime, status.InProgressProperties = operation, &now, properties
	status.ObservedGeneration = instance.Generation
	status.AsyncOpInProgress, status.LastOperation = false, nil
	status.DeprovisionStatus = v1beta1.DeletionRequired
	apimeta.RemoveStatusCondition(&status.Conditions, v1beta1.ConditionFailed)
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	return r.writeInstance(ctx, instance)
}

// clearOperation removes the current operation from the status.
func clearOperation(status *v1beta1.ServiceInstanceStatus) {
	status.CurrentOperation, status.OperationStartTime, status.InProgressProperties = "", nil, nil
	status.AsyncOpInProgress, status.LastOperation, status.OrphanMitigationInProgress = false, nil, false
}

// accept records that the broker has accepted an asynchronous operation.
func (r *reconciler) accept(ctx context.Context, instance *v1beta1.ServiceInstance, kind string, result *osb.Result, reason, message string) error {
	status := &instance.Status
	status.AsyncOpInProgress = true
	status.LastOperation = nil
	if result.Operation != "" {
		status.LastOperation = &result.Operation
	}
	if result.DashboardURL != "" {
		status.DashboardURL = &result.DashboardURL
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	delay := r.schedule.poll(kind, instance, status.OperationStartTime, 0)
	if err := r.writeInstance(ctx, instance); err != nil {
		return err
	}
	r.emit(instance, "", reason, message)
	return controller.RequeueAfter(delay)
}

// expired reports whether an operation has reached the retry timeout.
func (r *reconciler) expired(start *metav1.Time) bool {
	return start != nil && time.Since(start.Time) > r.timing.RetryTimeout
}
