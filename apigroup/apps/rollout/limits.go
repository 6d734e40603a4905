package rollout

import (
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Limits are how far a rolling deployment may be from the wanted number of pods.
type Limits struct {
	// Desired are the pods that are wanted in the end, Surge those that may be there beyond them, Unavailable those of them that need not serve.
	Desired, Surge, Unavailable int32
}

// RollingLimits are the limits that the parameters set for a number of pods. A share of the surge is rounded up and one of unavailable pods
// down, as in OpenShift 3.11; where both come to nothing one pod may be unavailable, since it must be possible to advance.
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

// Minimum is the number of pods that serve at any time.
func (l Limits) Minimum() int32 { return l.Desired - l.Unavailable }

// Grow is how many pods the new deployment may have now that it has some and the old ones have others. It never has fewer than before.
func (l Limits) Grow(old, new int32) int32 {
	if room := l.Desired + l.Surge - old - new; room > 0 && new < l.Desired {
		return min(l.Desired, new+room)
	}
	return new
}

// FirstStep is how many pods a new deployment may have before its deployer runs, when older ones have others: those of the first step of a
// rolling deployment without a hook before it, which a deployer would add first of all. A first deployment begins with one pod.
func FirstStep(dc *appsv1.DeploymentConfig, desired, old int32) int32 {
	params := dc.Spec.Strategy.RollingParams
	switch {
	case dc.Spec.Strategy.Type != appsv1.DeploymentStrategyTypeRolling || params == nil || params.Pre != nil:
		return 0
	case old == 0:
		return min(1, desired)
	}
	limits, err := RollingLimits(desired, params)
	if err != nil { // the deployer says so
		return 0
	}
	return limits.Grow(old, 0)
}
