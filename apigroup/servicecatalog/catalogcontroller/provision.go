package catalogcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// order is a provision or update request, without the connection to the broker.
type order struct {
	*offer
	parameters parameters
	context    map[string]any
	cluster    string
	space      string
	// repeated means that a previous process or attempt might have sent the request.
	repeated bool
}

// prepare resolves the objects and parameters that a request requires. If one of them is missing,
// the error is a *problem.
func (r *reconciler) prepare(ctx context.Context, instance *v1beta1.ServiceInstance) (*order, error) {
	o, err := r.resolve(ctx, instance)
	if err != nil {
		return nil, err
	}
	defaults, merged, err := defaultParameters(o)
	if err != nil {
		return nil, err
	}
	p, err := r.parameters(ctx, instance.Namespace, instance.Spec.Parameters, instance.Spec.ParametersFrom, defaults)
	if err != nil {
		return nil, err
	}
	profile, cluster, space, err := r.profile(ctx, instance.Namespace, instance.Name)
	if err != nil {
		return nil, err
	}
	instance.Status.DefaultProvisionParameters = merged
	instance.Status.UserSpecifiedClassName, instance.Status.UserSpecifiedPlanName = scopedName(o, o.class.ExternalName), o.plan.ExternalName
	return &order{offer: o, parameters: p, context: profile, cluster: cluster, space: space}, nil
}

// scopedName returns the class name for tables, including the class's scope.
func scopedName(o *offer, name string) string {
	if o.clusterScoped {
		return "ClusterServiceClass/" + name
	}
	return "ServiceClass/" + name
}

// provision requests a new instance from the broker.
func (r *reconciler) provision(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	status := &instance.Status
	if status.CurrentOperation == "" && apimeta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFailed) && status.ObservedGeneration == instance.Generation {
		return nil
	}
	order, err := r.prepare(ctx, instance)
	if err != nil {
		return r.waitForObject(ctx, instance, err)
	}
	order.repeated = status.CurrentOperation == v1beta1.OperationProvision
	if !order.repeated {
		switch {
		case order.classGone:
			return r.waitForObject(ctx, instance, waiting("ReferencesDeletedServiceClass", "The broker no longer offers class %q", order.class.ExternalName))
		case order.planGone:
			return r.waitForObject(ctx, instance, waiting("ReferencesDeletedServicePlan", "The broker no longer offers plan %q", order.plan.ExternalName))
		}
	}
	client, closeIdle, err := r.connection(ctx, order.broker)
	if err != nil {
		return r.failProvision(ctx, instance, order, err)
	}
	defer closeIdle()
	if !order.repeated {
		err = r.record(ctx, instance, v1beta1.OperationProvision, order.properties(instance, order.parameters, order.plan.MaintenanceVersion),
			"ProvisionRequestInFlight", "Provision request for ServiceInstance in-flight to Broker")
		if err != nil {
			return err
		}
	}
	result, err := client.Provision(ctx, order.target(instance), &osb.Provision{
		ServiceID: order.class.ExternalID, PlanID: order.plan.ExternalID, Context: order.context,
		OrganizationGUID: order.cluster, SpaceGUID: order.space, Parameters: order.parameters.values,
		MaintenanceInfo: osb.MaintenanceOf(recordedMaintenance(status.InProgressProperties)),
	})
	switch {
	case err != nil:
		return r.failProvision(ctx, instance, order, err)
	case result.Async:
		return r.accept(ctx, instance, instanceKind, result, "Provisioning", "The instance is being provisioned asynchronously")
	}
	if result.DashboardURL != "" {
		status.DashboardURL = &result.DashboardURL
	}
	return r.finish(ctx, instance, "ProvisionedSuccessfully", "The instance was provisioned successfully")
}

// finish records that the broker has provisioned or updated an instance.
func (r *reconciler) finish(ctx context.Context, instance *v1beta1.ServiceInstance, reason, message string) error {
	status := &instance.Status
	status.ExternalProperties = status.InProgressProperties
	status.ProvisionStatus = v1beta1.Provisioned
	status.ReconciledGeneration = status.ObservedGeneration
	clearOperation(status)
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionTrue, reason, message)
	r.schedule.forget(instanceKind, controller.Key{Namespace: instance.Namespace, Name: instance.Name})
	if err := r.writeInstance(ctx, instance); err != nil {
		return err
	}
	r.emit(instance, "", reason, message)
	return nil
}

// failProvision records a failed request. It decides whether to retry the request and whether the
// broker must first delete an instance that it might have created.
func (r *reconciler) failProvision(ctx context.Context, instance *v1beta1.ServiceInstance, order *order, err error) error {
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	if err := r.refresh(ctx, order, err); err != nil {
		return err
	}
	p := classify(err)
	message := fmt.Sprintf("Error provisioning ServiceInstance of %s at %s: %s", order, order.broker, p.message)
	if r.expired(instance.Status.OperationStartTime) {
		p.terminal, p.ambiguous = true, p.ambiguous || !p.definite
	}
	if p.definite && !order.repeated {
		instance.Status.DeprovisionStatus = v1beta1.DeletionNotRequired
	}
	return r.failed(ctx, instance, p, "ProvisionCallFailed", "ErrorCallingProvision", message, retryDelay(err))
}

// refresh requests a relist if the broker rejects a plan's maintenance version, so that the next
// attempt uses the current version.
func (r *reconciler) refresh(ctx context.Context, order *order, err error) error {
	var response *osb.Error
	if !errors.As(err, &response) || response.Code != osb.MaintenanceInfoConflict {
		return nil
	}
	order.broker.status.LastCatalogRetrievalTime = nil
	return r.updateBrokerStatus(ctx, order.broker)
}

// failed records a failed provision or update.
func (r *reconciler) failed(ctx context.Context, instance *v1beta1.ServiceInstance, p *problem, refusedReason, errorReason, message string, retryAfter time.Duration) error {
	status := &instance.Status
	reason := errorReason
	if p.definite || p.terminal {
		reason = refusedReason
	}
	if p.reason != "" {
		reason = p.reason
	}
	changed := true
	if ready := apimeta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady); ready != nil {
		changed = ready.Message != message
	}
	setCondition(&status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
	if p.terminal {
		setCondition(&status.Conditions, v1beta1.ConditionFailed, metav1.ConditionTrue, reason, message)
		status.ReconciledGeneration = status.ObservedGeneration
	}
	provisioning := status.ProvisionStatus != v1beta1.Provisioned
	switch {
	case p.ambiguous && provisioning:
		status.OrphanMitigationInProgress, status.AsyncOpInProgress, status.LastOperation = true, false, nil
		status.DeprovisionStatus = v1beta1.DeletionRequired
		setCondition(&status.Conditions, v1beta1.ConditionOrphanMitigation, metav1.ConditionTrue, "StartingInstanceOrphanMitigation",
			"The instance provision call failed with an ambiguous error; attempting to deprovision the instance in order to mitigate an orphaned resource")
	case p.terminal, p.definite:
		clearOperation(status)
	default:
		status.AsyncOpInProgress, status.LastOperation = false, nil
	}
	if changed {
		r.emit(instance, corev1.EventTypeWarning, reason, message)
	}
	delay := r.schedule.fail(instanceKind, instance, retryAfter)
	if status.OrphanMitigationInProgress {
		delay = r.timing.MinBackoff // the mitigation does not wait for the next attempt
	}
	if err := r.writeInstance(ctx, instance); err != nil {
		return err
	}
	if p.terminal && !status.OrphanMitigationInProgress {
		return nil
	}
	return controller.RequeueAfter(delay)
}
