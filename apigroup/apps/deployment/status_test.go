package deployment

import (
	"testing"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// conditionOf returns a condition, or an empty condition if the status does not contain it.
func conditionOf(status appsv1.DeploymentConfigStatus, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, condition := range status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return appsv1.DeploymentCondition{}
}

func TestStatusCountsPodsOfAllDeployments(t *testing.T) {
	dc := configuration(2)
	dc.Generation, dc.Status.Replicas = 7, 99
	latest := deployed(t, dc, appsv1.DeploymentStatusRunning)
	latest.Status = corev1.ReplicationControllerStatus{Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}
	previous := deployed(t, configuration(1), appsv1.DeploymentStatusComplete)
	previous.Status = corev1.ReplicationControllerStatus{Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	got := status(dc, []*corev1.ReplicationController{latest, previous}, nil)
	got.Conditions = nil
	want := appsv1.DeploymentConfigStatus{
		LatestVersion: 2, ObservedGeneration: 7, Replicas: 5, UpdatedReplicas: 3, ReadyReplicas: 4, AvailableReplicas: 3, UnavailableReplicas: 2,
	}
	if got.String() != want.String() {
		t.Errorf("got %v, want %v", &got, &want)
	}
}

func TestAvailableDependsOnStrategy(t *testing.T) {
	rolling := func(unavailable intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRolling, RollingParams: &appsv1.RollingDeploymentStrategyParams{MaxUnavailable: &unavailable}}
	}
	recreate := appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyTypeRecreate}
	tests := []struct {
		name     string
		strategy appsv1.DeploymentStrategy
		replicas int32
		pods     int32
		want     corev1.ConditionStatus
	}{
		{"recreate with all pods", recreate, 4, 4, corev1.ConditionTrue},
		{"recreate with a missing pod", recreate, 4, 3, corev1.ConditionFalse},
		{"rolling with the minimum number", rolling(intstr.FromInt32(1)), 4, 3, corev1.ConditionTrue},
		{"rolling below the minimum number", rolling(intstr.FromInt32(1)), 4, 2, corev1.ConditionFalse},
		{"percentage is rounded down", rolling(intstr.FromString("25%")), 7, 6, corev1.ConditionTrue},
		{"below the rounded percentage", rolling(intstr.FromString("25%")), 7, 5, corev1.ConditionFalse},
		{"no pod is not available", rolling(intstr.FromString("100%")), 4, 0, corev1.ConditionFalse},
		{"scaled to zero", recreate, 0, 0, corev1.ConditionFalse},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dc := configuration(1)
			dc.Spec.Strategy, dc.Spec.Replicas = tt.strategy, tt.replicas
			if got := available(dc, tt.pods); got.Status != tt.want || got.Type != appsv1.DeploymentAvailable {
				t.Errorf("got %s %s, want %s", got.Type, got.Status, tt.want)
			}
		})
	}
}

func TestProgressFollowsPhaseOfLatestDeployment(t *testing.T) {
	tests := []struct {
		name      string
		phase     appsv1.DeploymentStatus
		cancelled bool
		paused    bool
		status    corev1.ConditionStatus // "" means that the condition is missing
		reason    string
	}{
		{"new", appsv1.DeploymentStatusNew, false, false, "", ""},
		{"pending", appsv1.DeploymentStatusPending, false, false, corev1.ConditionUnknown, ""},
		{"running", appsv1.DeploymentStatusRunning, false, false, corev1.ConditionTrue, "ReplicationControllerUpdated"},
		{"complete", appsv1.DeploymentStatusComplete, false, false, corev1.ConditionTrue, "NewReplicationControllerAvailable"},
		{"failed", appsv1.DeploymentStatusFailed, false, false, corev1.ConditionFalse, "ProgressDeadlineExceeded"},
		{"cancelled", appsv1.DeploymentStatusFailed, true, false, corev1.ConditionFalse, "RolloutCancelled"},
		{"paused", appsv1.DeploymentStatusRunning, false, true, corev1.ConditionUnknown, "DeploymentConfigPaused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dc := configuration(1)
			dc.Spec.Paused = tt.paused
			rc := deployed(t, dc, tt.phase)
			if tt.cancelled {
				rc.Annotations[appsv1.DeploymentCancelledAnnotation] = "true"
			}
			got := conditionOf(status(dc, []*corev1.ReplicationController{rc}, nil), appsv1.DeploymentProgressing)
			if got.Status != tt.status || got.Reason != tt.reason {
				t.Errorf("got %q, %q, want %q, %q", got.Status, got.Reason, tt.status, tt.reason)
			}
		})
	}
}

func TestAdditionalConditionReplacesProgress(t *testing.T) {
	dc := configuration(1)
	extra := condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "Broken", "the template is invalid")
	got := conditionOf(status(dc, []*corev1.ReplicationController{deployed(t, dc, appsv1.DeploymentStatusComplete)}, extra), appsv1.DeploymentProgressing)
	if got.Reason != "Broken" || got.Message != "the template is invalid" {
		t.Errorf("got %+v", got)
	}
}

func TestFailureEndsWhenPodsCanBeCreated(t *testing.T) {
	dc := configuration(1)
	rc := deployed(t, dc, appsv1.DeploymentStatusNew)
	rc.Annotations[rollout.CreateErrorAnnotation] = "exceeded quota"
	failing := status(dc, []*corev1.ReplicationController{rc}, nil)
	want := `replication controller "` + rc.Name + `": exceeded quota`
	if got := conditionOf(failing, appsv1.DeploymentReplicaFailure); got.Status != corev1.ConditionTrue || got.Reason != failedCreate || got.Message != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	delete(rc.Annotations, rollout.CreateErrorAnnotation)
	dc.Status = failing
	if got := conditionOf(status(dc, []*corev1.ReplicationController{rc}, nil), appsv1.DeploymentReplicaFailure); got.Type != "" {
		t.Errorf("the condition still exists: %+v", got)
	}
}

func TestConditionKeepsItsTimes(t *testing.T) {
	earlier := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	set := func(message string, is corev1.ConditionStatus) appsv1.DeploymentCondition {
		status := appsv1.DeploymentConfigStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Message: "as before", LastUpdateTime: earlier, LastTransitionTime: earlier,
		}}}
		setCondition(&status, appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: is, Message: message})
		return status.Conditions[0]
	}
	tests := []struct {
		name               string
		message            string
		status             corev1.ConditionStatus
		updated, transited bool
	}{
		{"unchanged", "as before", corev1.ConditionTrue, false, false},
		{"another message", "changed", corev1.ConditionTrue, true, false},
		{"another status", "as before", corev1.ConditionFalse, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := set(tt.message, tt.status)
			if updated := !got.LastUpdateTime.Equal(&earlier); updated != tt.updated {
				t.Errorf("the update time has changed: %t", updated)
			}
			if transited := !got.LastTransitionTime.Equal(&earlier); transited != tt.transited {
				t.Errorf("the transition time has changed: %t", transited)
			}
			if got.Message != tt.message || got.Status != tt.status {
				t.Errorf("got %+v", got)
			}
		})
	}
}
