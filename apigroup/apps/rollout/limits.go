package rollout

import (
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Limits defines how far a rolling deployment can deviate from the desired number of pods.
type Limits struct {
	// Desired is the final number of pods. Surge is the number of pods that can exist in excess of
	// Desired. Unavailable is the number of pods that can be unavailable.
	Desired, Surge, Unavailable int32
}

// RollingLimits calculates the limits for a number of pods. It rounds a percentage up for the
// surge, and down for unavailable pods, as in OpenShift 3.11. If both limits are 0, one pod can be
// unavailable, because otherwise the deployment could not progress.
func RollingLimits(desired int32, params *appsv1.RollingDeploymentStrategyParams) (Limits, error) {
	quarter := intstr.FromString("25%")
	surge, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(params.MaxSurge, quarter)), int(desired), true)
	if err != nil {
		return Limits{}, fmt.Errorf("read maxSurge: %w", err)
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(params.MaxUnavailable, quarter)), int(desired), false)
	if err != nil {
		return Limits{}, fmt.Errorf("read maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return Limits{desired, int32(surge), min(int32(unavailable), desired)}, nil
}

// Minimum returns the minimum number of available pods.
func (l Limits) Minimum() int32 { return l.Desired - l.Unavailable }

// Grow returns the next number of new pods, given the current numbers of old and new pods. The
// result is never less than new.
func (l Limits) Grow(old, new int32) int32 {
	if available := l.Desired + l.Surge - old - new; available > 0 && new < l.Desired {
		return min(l.Desired, new+available)
	}
	return new
}

// FirstStep returns the number of pods that a new deployment can have before its deployer runs.
// This is the first step of a rolling deployment without a pre hook, and 0 for all other
// deployments. If no other deployment has pods, the first step is one pod.
func FirstStep(dc *appsv1.DeploymentConfig, desired, old int32) int32 {
	params := dc.Spec.Strategy.RollingParams
	switch {
	case dc.Spec.Strategy.Type != appsv1.DeploymentStrategyTypeRolling || params == nil || params.Pre != nil:
		return 0
	case old == 0:
		return min(1, desired)
	}
	limits, err := RollingLimits(desired, params)
	if err != nil { // the deployer reports the error
		return 0
	}
	return limits.Grow(old, 0)
}
