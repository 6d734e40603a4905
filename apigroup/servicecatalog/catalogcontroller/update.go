package catalogcontroller

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// updateInstance requests a change to a provisioned instance.
func (r *reconciler) updateInstance(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	status := &instance.Status
	if status.CurrentOperation == "" && apimeta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFailed) && status.ObservedGeneration == instance.Generation {
		return nil
	}
	order, err := r.prepare(ctx, instance)
	if err != nil {
		return r.waitForObject(ctx, instance, err)
	}
	previous := recordedPlan(status.ExternalProperties, order.plan.ExternalID)
	planChanges := previous != order.plan.ExternalID
	order.repeated = status.CurrentOperation == v1beta1.OperationUpdate
	if !order.repeated {
		if planChanges && order.planGone {
			return r.waitForObject(ctx, instance, waiting("ReferencesDeletedServicePlan", "The broker no longer offers plan %q", order.plan.ExternalName))
		}
	}
	changed := status.ExternalProperties == nil || status.ExternalProperties.ParameterChecksum != order.parameters.checksum
	version := recordedMaintenance(status.ExternalProperties)
	previousVersion := version
	if planChanges || !changed { // an increased updateRequests alone also updates the version
		version = order.plan.MaintenanceVersion
	}
	client, closeIdle, err := r.connection(ctx, order.broker)
	if err != nil {
		return r.failUpdate(ctx, instance, order, err)
	}
	defer closeIdle()
	if !order.repeated {
		err = r.record(ctx, instance, v1beta1.OperationUpdate, order.properties(instance, order.parameters, version),
			"UpdateInstanceRequestInFlight", "Update request for ServiceInstance in-flight to Broker")
		if err != nil {
			return err
		}
	}
	body := &osb.Update{ServiceID: order.class.ExternalID, Context: order.context}
	body.PreviousValues.PlanID = previous
	if planChanges {
		body.PlanID = order.plan.ExternalID
	}
	body.PreviousValues.MaintenanceInfo = osb.MaintenanceOf(previousVersion)
	if requested := recordedMaintenance(status.InProgressProperties); requested != previousVersion || planChanges {
		body.MaintenanceInfo = osb.MaintenanceOf(requested)
	}
	if changed {
		body.Parameters = order.parameters.values
	}
	target := order.target(instance)
	result, err := client.Update(ctx, target, body)
	switch {
	case err != nil:
		return r.failUpdate(ctx, instance, order, err)
	case result.Async:
		return r.accept(ctx, instance, instanceKind, result, "UpdatingInstance", "The instance is being updated asynchronously")
	}
	if result.DashboardURL != "" {
		status.DashboardURL = &result.DashboardURL
	}
	return r.finish(ctx, instance, "InstanceUpdatedSuccessfully", "The instance was updated successfully")
}

// failUpdate records a failed update. The instance continues to exist unchanged.
func (r *reconciler) failUpdate(ctx context.Context, instance *v1beta1.ServiceInstance, order *order, err error) error {
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	if err := r.refresh(ctx, order, err); err != nil {
		return err
	}
	p := classify(err)
	p.terminal = p.terminal || r.expired(instance.Status.OperationStartTime)
	message := fmt.Sprintf("Error updating ServiceInstance of %s at %s: %s", order, order.broker, p.message)
	return r.failed(ctx, instance, p, "UpdateInstanceCallFailed", "ErrorCallingUpdateInstance", message, retryDelay(err))
}
