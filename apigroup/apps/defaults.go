package apps

import (
	"maps"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// OpenShift 3's defaults for deployment configurations. Times are in seconds.
const (
	defaultTimeout      = 10 * 60
	defaultInterval     = 1
	defaultUpdatePeriod = 1
	defaultDeadline     = 6 * 60 * 60
	defaultHistory      = 10
	defaultShare        = "25%"
)

// setDefaults sets the defaults of OpenShift 3, for example a rolling deployment after each
// template change.
func setDefaults(dc *appsv1.DeploymentConfig) {
	spec := &dc.Spec
	if spec.Triggers == nil {
		spec.Triggers = []appsv1.DeploymentTriggerPolicy{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	}
	for _, trigger := range spec.Triggers {
		if params := trigger.ImageChangeParams; params != nil {
			setReferenceDefaults(&params.From)
		}
	}
	if len(spec.Selector) == 0 && spec.Template != nil {
		spec.Selector = maps.Clone(spec.Template.Labels)
	}
	setDefaultPointer(&spec.RevisionHistoryLimit, defaultHistory)

	strategy := &spec.Strategy
	setDefault(&strategy.Type, appsv1.DeploymentStrategyTypeRolling)
	if strategy.Type == appsv1.DeploymentStrategyTypeRolling && strategy.RollingParams == nil {
		strategy.RollingParams = &appsv1.RollingDeploymentStrategyParams{}
	}
	if strategy.Type == appsv1.DeploymentStrategyTypeRecreate && strategy.RecreateParams == nil {
		strategy.RecreateParams = &appsv1.RecreateDeploymentStrategyParams{}
	}
	setDefaultPointer(&strategy.ActiveDeadlineSeconds, defaultDeadline)
	if params := strategy.RollingParams; params != nil {
		setRollingDefaults(params)
	}
	if params := strategy.RecreateParams; params != nil {
		setDefaultPointer(&params.TimeoutSeconds, defaultTimeout)
		setHookDefaults(params.Pre, params.Mid, params.Post)
	}
}

// setRollingDefaults sets the defaults of a rolling deployment. Unless the user sets both limits,
// it ensures that at least one limit is not zero, because otherwise the deployment could not
// progress.
func setRollingDefaults(params *appsv1.RollingDeploymentStrategyParams) {
	setDefaultPointer(&params.IntervalSeconds, defaultInterval)
	setDefaultPointer(&params.UpdatePeriodSeconds, defaultUpdatePeriod)
	setDefaultPointer(&params.TimeoutSeconds, defaultTimeout)
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
			setReferenceDefaults(&hook.TagImages[i].To)
		}
	}
}

// setReferenceDefaults completes an image stream tag reference. It converts an image stream
// reference to a reference to the stream's "latest" tag.
func setReferenceDefaults(reference *corev1.ObjectReference) {
	setDefault(&reference.Kind, "ImageStreamTag")
	if reference.Kind != "ImageStream" && reference.Kind != "ImageRepository" {
		return
	}
	reference.Kind = "ImageStreamTag"
	if reference.Name != "" && !strings.Contains(reference.Name, ":") {
		reference.Name += ":latest"
	}
}

// isZero reports whether value is set to zero or to zero percent.
func isZero(value *intstr.IntOrString) bool {
	return value != nil && (value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && value.StrVal == "0%")
}

func setDefault[T ~string](value *T, defaultValue T) {
	if *value == "" {
		*value = defaultValue
	}
}

func setDefaultPointer[T any](value **T, defaultValue T) {
	if *value == nil {
		*value = &defaultValue
	}
}
