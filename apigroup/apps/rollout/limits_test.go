package rollout

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func params(surge, unavailable string) *appsv1.RollingDeploymentStrategyParams {
	return &appsv1.RollingDeploymentStrategyParams{MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable))}
}

func TestRollingLimits(t *testing.T) {
	for _, tt := range []struct {
		desired            int32
		surge, unavailable string
		want               Limits
	}{
		{4, "25%", "25%", Limits{4, 1, 1}},
		{1, "25%", "25%", Limits{1, 1, 0}},
		{10, "3", "0", Limits{10, 3, 0}},
		{3, "0", "10%", Limits{3, 0, 1}}, // the deployment must be able to progress
		{2, "0", "5", Limits{2, 0, 2}},
		{0, "25%", "25%", Limits{0, 0, 0}},
	} {
		got, err := RollingLimits(tt.desired, params(tt.surge, tt.unavailable))
		if err != nil || got != tt.want {
			t.Errorf("%d pods, surge %s, unavailable %s: %+v, %v, want %+v", tt.desired, tt.surge, tt.unavailable, got, err, tt.want)
		}
	}
	if _, err := RollingLimits(1, params("many", "1")); err == nil {
		t.Error("an invalid percentage was accepted")
	}
}

func TestFirstStep(t *testing.T) {
	hooked := params("25%", "25%")
	hooked.Pre = &appsv1.LifecycleHook{}
	for name, tt := range map[string]struct {
		of           appsv1.DeploymentStrategyType
		params       *appsv1.RollingDeploymentStrategyParams
		desired, old int32
		want         int32
	}{
		"the surge":                       {appsv1.DeploymentStrategyTypeRolling, params("25%", "25%"), 4, 4, 1},
		"more if pods are missing":        {appsv1.DeploymentStrategyTypeRolling, params("25%", "25%"), 4, 2, 3},
		"none without surge":              {appsv1.DeploymentStrategyTypeRolling, params("0", "1"), 4, 4, 0},
		"one pod of the first deployment": {appsv1.DeploymentStrategyTypeRolling, params("25%", "25%"), 4, 0, 1},
		"none with zero desired pods":     {appsv1.DeploymentStrategyTypeRolling, params("25%", "25%"), 0, 0, 0},
		"none before a hook":              {appsv1.DeploymentStrategyTypeRolling, hooked, 4, 0, 0},
		"none for Recreate":               {appsv1.DeploymentStrategyTypeRecreate, nil, 4, 0, 0},
		"none for Custom":                 {appsv1.DeploymentStrategyTypeCustom, params("25%", "25%"), 4, 4, 0},
	} {
		dc := &appsv1.DeploymentConfig{}
		dc.Spec.Strategy = appsv1.DeploymentStrategy{Type: tt.of, RollingParams: tt.params}
		if got := FirstStep(dc, tt.desired, tt.old); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
