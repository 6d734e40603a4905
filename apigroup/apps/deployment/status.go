package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// updateStatus updates a configuration's status if it has changed. extra, if set, is an additional
// condition.
func (l *configController) updateStatus(ctx context.Context, dc *appsv1.DeploymentConfig, deployments []*corev1.ReplicationController, extra *appsv1.DeploymentCondition) error {
	before, err := l.configs.DeploymentConfigs(dc.Namespace).Get(dc.Name)
	if err != nil {
		return err
	}
	dc.Status = status(dc, deployments, extra)
	if apiequality.Semantic.DeepEqual(before.Status, dc.Status) {
		return nil
	}
	if _, err := l.apps.DeploymentConfigs(dc.Namespace).UpdateStatus(ctx, dc, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update status: %w", err)
	}
	return nil
}

// status returns a configuration's status: the pod counts of all its deployments, and the
// conditions.
func status(dc *appsv1.DeploymentConfig, deployments []*corev1.ReplicationController, extra *appsv1.DeploymentCondition) appsv1.DeploymentConfigStatus {
	status := dc.DeepCopy().Status
	status.ObservedGeneration = dc.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.UpdatedReplicas = 0, 0, 0, 0
	for _, rc := range deployments {
		status.Replicas += rc.Status.Replicas
		status.ReadyReplicas += rc.Status.ReadyReplicas
		status.AvailableReplicas += rc.Status.AvailableReplicas
	}
	latest := versionOf(deployments, dc.Status.LatestVersion)
	if latest != nil {
		status.UpdatedReplicas = latest.Status.Replicas
	}
	status.UnavailableReplicas = max(0, status.Replicas-status.AvailableReplicas)
	updateFailure(&status, deployments)
	now := []*appsv1.DeploymentCondition{available(dc, status.AvailableReplicas), extra}
	if extra == nil {
		now = append(now, progress(dc, latest))
	}
	for _, condition := range now {
		if condition != nil {
			setCondition(&status, *condition)
		}
	}
	return status
}

// failedCreate is the reason in events and conditions about pods that cannot be created.
// Kubernetes' controllers use the same reason.
const failedCreate = "FailedCreate"

// updateFailure sets the ReplicaFailure condition while a deployment's pods or its deployer pod
// cannot be created. Otherwise, it removes the condition.
func updateFailure(status *appsv1.DeploymentConfigStatus, newestFirst []*corev1.ReplicationController) {
	for _, rc := range newestFirst {
		if message := rollout.CreateFailure(rc); message != "" {
			setCondition(status, *condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, failedCreate, fmt.Sprintf("replication controller %q: %s", rc.Name, message)))
			return
		}
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == appsv1.DeploymentReplicaFailure })
}

func condition(of appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason appsv1.DeploymentConditionReason, message string) *appsv1.DeploymentCondition {
	return &appsv1.DeploymentCondition{Type: of, Status: is, Reason: string(reason), Message: message}
}

// available returns the Available condition, which reports whether the strategy's minimum number of
// pods is available.
func available(dc *appsv1.DeploymentConfig, pods int32) *appsv1.DeploymentCondition {
	unavailable := 0
	if params := dc.Spec.Strategy.RollingParams; params != nil && params.MaxUnavailable != nil && dc.Spec.Strategy.Type == appsv1.DeploymentStrategyTypeRolling {
		// Validation has ensured that the conversion succeeds.
		unavailable, _ = intstr.GetScaledValueFromIntOrPercent(params.MaxUnavailable, int(dc.Spec.Replicas), false)
	}
	if pods >= dc.Spec.Replicas-int32(unavailable) && pods > 0 {
		return condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "", "Deployment config has minimum availability.")
	}
	return condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "", "Deployment config does not have minimum availability.")
}

// progress returns the Progressing condition of the latest deployment, as in OpenShift 3.
func progress(dc *appsv1.DeploymentConfig, latest *corev1.ReplicationController) *appsv1.DeploymentCondition {
	progressing := func(is corev1.ConditionStatus, reason appsv1.DeploymentConditionReason, format string, values ...any) *appsv1.DeploymentCondition {
		return condition(appsv1.DeploymentProgressing, is, reason, fmt.Sprintf(format, values...))
	}
	switch {
	case dc.Spec.Paused:
		return progressing(corev1.ConditionUnknown, appsv1.DeploymentConfigPausedReason, "deployment config is paused")
	case latest == nil:
		return nil
	}
	switch phase := rollout.Phase(latest); {
	case phase == appsv1.DeploymentStatusPending:
		return progressing(corev1.ConditionUnknown, "", "replication controller %q is waiting for pod %q to run", latest.Name, rollout.DeployerName(latest.Name))
	case phase == appsv1.DeploymentStatusRunning:
		return progressing(corev1.ConditionTrue, appsv1.ReplicationControllerUpdatedReason, "replication controller %q is progressing", latest.Name)
	case phase == appsv1.DeploymentStatusComplete:
		return progressing(corev1.ConditionTrue, appsv1.NewReplicationControllerAvailableReason, "replication controller %q successfully rolled out", latest.Name)
	case phase == appsv1.DeploymentStatusFailed && rollout.Cancelled(latest):
		return progressing(corev1.ConditionFalse, appsv1.RolloutCancelledReason, "rollout of replication controller %q was cancelled", latest.Name)
	case phase == appsv1.DeploymentStatusFailed:
		return progressing(corev1.ConditionFalse, appsv1.ProgressDeadlineExceededReason, "replication controller %q has failed progressing", latest.Name)
	}
	return nil
}

// setCondition adds or updates a condition and its timestamps.
func setCondition(status *appsv1.DeploymentConfigStatus, condition appsv1.DeploymentCondition) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	condition.LastUpdateTime, condition.LastTransitionTime = now, now
	i := slices.IndexFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	old := status.Conditions[i]
	if old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
		if old.Reason == condition.Reason && old.Message == condition.Message {
			return
		}
	}
	status.Conditions[i] = condition
}
