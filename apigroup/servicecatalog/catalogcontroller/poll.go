package catalogcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
)

// pollInstance polls the current asynchronous operation of an instance.
func (r *reconciler) pollInstance(ctx context.Context, instance *v1beta1.ServiceInstance) error {
	status := &instance.Status
	deletes := status.OrphanMitigationInProgress || status.CurrentOperation == v1beta1.OperationDeprovision
	kind := instanceKind
	if deletes {
		kind = instanceDeleteKind
	}
	offer, err := r.resolve(ctx, instance)
	if err != nil {
		return r.waitForObject(ctx, instance, err)
	}
	state, err := r.lastOperation(ctx, offer, instance)
	var response *osb.Error
	if errors.As(err, &response) && response.Gone() && deletes {
		return r.finishDeletion(ctx, instance)
	}
	if result, ok := r.interrupted(ctx, err); ok {
		return result
	}
	state, err = r.limit(state, err, status.OperationStartTime, offer, deletes)
	switch {
	case err != nil:
		// The state is unknown, so poll the operation again.
		message := fmt.Sprintf("Error polling last operation: %s", classify(err).message)
		return r.pollAgain(ctx, instance, kind, "ErrorPollingLastOperation", message, osb.State{RetryAfter: retryDelay(err)})
	case state.State == osb.InProgress:
		reason, message := progress(instance)
		if state.Description != "" {
			message += " (" + state.Description + ")"
		}
		return r.pollAgain(ctx, instance, kind, reason, message, *state)
	case deletes && state.State == osb.Succeeded:
		return r.finishDeletion(ctx, instance)
	case deletes:
		return r.failDeletion(ctx, instance, offer, errors.New(orElse(state.Description, "the operation failed")))
	case state.State == osb.Succeeded && status.CurrentOperation == v1beta1.OperationUpdate:
		r.showDashboard(ctx, offer, instance)
		return r.finish(ctx, instance, "InstanceUpdatedSuccessfully", "The instance was updated successfully")
	case state.State == osb.Succeeded:
		r.showDashboard(ctx, offer, instance)
		return r.finish(ctx, instance, "ProvisionedSuccessfully", "The instance was provisioned successfully")
	}
	// The broker must delete any remains of a failed provision request.
	p := &problem{terminal: true, ambiguous: true}
	refused, message := "ProvisionCallFailed", "Error provisioning: "+orElse(state.Description, "the operation failed")
	if status.CurrentOperation == v1beta1.OperationUpdate {
		refused, message = "UpdateInstanceCallFailed", "Error updating: "+orElse(state.Description, "the operation failed")
	}
	return r.failed(ctx, instance, p, refused, refused, message, 0)
}

// limit returns the state of a polled operation. An operation that takes longer than the retry
// timeout or the plan's limit has failed. The plan's limit does not apply to deletions, because the
// catalog must not forget an instance that the broker is still deleting.
func (r *reconciler) limit(state *osb.State, err error, start *metav1.Time, offer *offer, deletes bool) (*osb.State, error) {
	expired := r.expired(start)
	if seconds := offer.plan.MaximumPollingDurationSeconds; seconds > 0 && start != nil && !deletes {
		expired = expired || time.Since(start.Time).Seconds() > float64(seconds)
	}
	if expired && (err != nil || state.State == osb.InProgress) {
		return &osb.State{State: osb.Failed, Description: "The operation did not end in time"}, nil
	}
	return state, err
}

// showDashboard retrieves an instance's dashboard URL, which some brokers return only after an
// asynchronous operation has finished. A failure does not change the result of the operation.
func (r *reconciler) showDashboard(ctx context.Context, offer *offer, instance *v1beta1.ServiceInstance) {
	if !offer.class.InstancesRetrievable {
		return
	}
	client, closeIdle, err := r.connection(ctx, offer.broker)
	if err != nil {
		return
	}
	defer closeIdle()
	target := offer.target(instance)
	target.PlanID = recordedPlan(instance.Status.InProgressProperties, target.PlanID)
	if result, err := client.Instance(ctx, target); err == nil && result.DashboardURL != "" {
		instance.Status.DashboardURL = &result.DashboardURL
	}
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// progress returns the condition reason and message for the current operation.
func progress(instance *v1beta1.ServiceInstance) (reason, message string) {
	switch {
	case instance.Status.OrphanMitigationInProgress, instance.Status.CurrentOperation == v1beta1.OperationDeprovision:
		return "Deprovisioning", "The instance is being deprovisioned asynchronously"
	case instance.Status.CurrentOperation == v1beta1.OperationUpdate:
		return "UpdatingInstance", "The instance is being updated asynchronously"
	}
	return "Provisioning", "The instance is being provisioned asynchronously"
}

func (r *reconciler) lastOperation(ctx context.Context, offer *offer, instance *v1beta1.ServiceInstance) (*osb.State, error) {
	client, closeIdle, err := r.connection(ctx, offer.broker)
	if err != nil {
		return nil, err
	}
	defer closeIdle()
	target := offer.target(instance)
	target.PlanID = recordedPlan(instance.Status.InProgressProperties, target.PlanID)
	return client.LastOperation(ctx, target)
}

// pollAgain records the state of an operation and schedules the next poll.
func (r *reconciler) pollAgain(ctx context.Context, instance *v1beta1.ServiceInstance, kind, reason, message string, state osb.State) error {
	delay := r.schedule.poll(kind, instance, instance.Status.OperationStartTime, state.RetryAfter)
	ready := apimeta.FindStatusCondition(instance.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || ready.Message != message || ready.Reason != reason {
		setCondition(&instance.Status.Conditions, v1beta1.ConditionReady, metav1.ConditionFalse, reason, message)
		if err := r.writeInstance(ctx, instance); err != nil {
			return err
		}
	}
	return controller.RequeueAfter(delay)
}
