package apps

import (
	"maps"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Defaults of deployment configurations in OpenShift 3.
const (
	defaultTimeout      = 10 * 60
	defaultInterval     = 1
	defaultUpdatePeriod = 1
	defaultDeadline     = 6 * 60 * 60
	defaultHistory      = 10
	defaultShare        = "25%"
)

// setDefaults fills in what OpenShift 3 fills in: a rolling deployment whenever the template changes.
func setDefaults(dc *appsv1.DeploymentConfig) {
	spec := &dc.Spec
	if spec.Triggers == nil {
		spec.Triggers = []appsv1.DeploymentTriggerPolicy{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	}
	for _, trigger := range spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			orDefault(&params.From.Kind, "ImageStreamTag")
		}
	}
	if len(spec.Selector) == 0 && spec.Template != nil {
		spec.Selector = maps.Clone(spec.Template.Labels)
	}
	orNew(&spec.RevisionHistoryLimit, defaultHistory)

	strategy := &spec.Strategy
	orDefault(&strategy.Type, appsv1.DeploymentStrategyTypeRolling)
	if strategy.Type == appsv1.DeploymentStrategyTypeRolling && strategy.RollingParams == nil {
		strategy.RollingParams = &appsv1.RollingDeploymentStrategyParams{}
	}
	if strategy.Type == appsv1.DeploymentStrategyTypeRecreate && strategy.RecreateParams == nil {
		strategy.RecreateParams = &appsv1.RecreateDeploymentStrategyParams{}
	}
	orNew(&strategy.ActiveDeadlineSeconds, defaultDeadline)
	if params := strategy.RollingParams; params != nil {
		setRollingDefaults(params)
	}
	if params := strategy.RecreateParams; params != nil {
		orNew(&params.TimeoutSeconds, defaultTimeout)
		setHookDefaults(params.Pre, params.Mid, params.Post)
	}
}

// setRollingDefaults sees to it that a deployment can advance: unless both limits are given, one of them is
// not zero.
func setRollingDefaults(params *appsv1.RollingDeploymentStrategyParams) {
	orNew(&params.IntervalSeconds, defaultInterval)
	orNew(&params.UpdatePeriodSeconds, defaultUpdatePeriod)
	orNew(&params.TimeoutSeconds, defaultTimeout)
	neither := params.MaxUnavailable == nil && params.MaxSurge == nil
	share := intstr.FromString(defaultShare)
	if params.MaxUnavailable == nil && (neither || isZero(params.MaxSurge)) {
		params.MaxUnavailable = &share
	}
	if params.MaxSurge == nil && (neither || isZero(params.MaxUnavailable)) {
		other := share
		params.MaxSurge = &other
	}
	zero := intstr.FromInt32(0)
	if params.MaxUnavailable == nil {
		params.MaxUnavailable = &zero
	}
	if params.MaxSurge == nil {
		params.MaxSurge = &zero
	}
	setHookDefaults(params.Pre, params.Post)
}

func setHookDefaults(hooks ...*appsv1.LifecycleHook) {
	for _, hook := range hooks {
		if hook == nil {
			continue
		}
		for i := range hook.TagImages {
			orDefault(&hook.TagImages[i].To.Kind, "ImageStreamTag")
		}
	}
}

// isZero says whether a number or share is given and zero.
func isZero(value *intstr.IntOrString) bool {
	return value != nil && (value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && value.StrVal == "0%")
}

func orDefault[T ~string](value *T, otherwise T) {
	if *value == "" {
		*value = otherwise
	}
}

func orNew[T any](value **T, otherwise T) {
	if *value == nil {
		*value = &otherwise
	}
}
