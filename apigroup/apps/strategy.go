package apps

import (
	"strconv"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (v validator) strategy(strategy *appsv1.DeploymentStrategy, at *field.Path) (errs field.ErrorList) {
	switch strategy.Type {
	case appsv1.DeploymentStrategyTypeRolling, appsv1.DeploymentStrategyTypeRecreate:
	case appsv1.DeploymentStrategyTypeCustom:
		if strategy.CustomParams == nil {
			errs = append(errs, field.Required(at.Child("customParams"), "set the image of the deployer"))
		} else if strategy.CustomParams.Image == "" {
			errs = append(errs, field.Required(at.Child("customParams", "image"), "set the image of the deployer"))
		}
	default:
		errs = append(errs, field.NotSupported(at.Child("type"), strategy.Type, []appsv1.DeploymentStrategyType{
			appsv1.DeploymentStrategyTypeRolling, appsv1.DeploymentStrategyTypeRecreate, appsv1.DeploymentStrategyTypeCustom}))
	}
	if params := strategy.CustomParams; params != nil {
		errs = append(errs, v.rules.Env(params.Environment, at.Child("customParams", "environment"))...)
	}
	if params, in := strategy.RecreateParams, at.Child("recreateParams"); params != nil {
		errs = append(errs, validateSeconds(params.TimeoutSeconds, in.Child("timeoutSeconds"))...)
		errs = append(errs, v.hook(params.Pre, in.Child("pre"))...)
		errs = append(errs, v.hook(params.Mid, in.Child("mid"))...)
		errs = append(errs, v.hook(params.Post, in.Child("post"))...)
	}
	if strategy.RollingParams != nil {
		errs = append(errs, v.rolling(strategy.RollingParams, at.Child("rollingParams"))...)
	}
	errs = append(errs, metavalidation.ValidateLabels(strategy.Labels, at.Child("labels"))...)
	errs = append(errs, validation.ValidateAnnotations(strategy.Annotations, at.Child("annotations"))...)
	errs = append(errs, v.rules.Resources(&strategy.Resources, at.Child("resources"))...)
	return append(errs, validateSeconds(strategy.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
}

func (v validator) rolling(params *appsv1.RollingDeploymentStrategyParams, at *field.Path) (errs field.ErrorList) {
	errs = append(errs, validateSeconds(params.IntervalSeconds, at.Child("intervalSeconds"))...)
	errs = append(errs, validateSeconds(params.UpdatePeriodSeconds, at.Child("updatePeriodSeconds"))...)
	errs = append(errs, validateSeconds(params.TimeoutSeconds, at.Child("timeoutSeconds"))...)
	errs = append(errs, validateIntOrPercent(params.MaxUnavailable, true, at.Child("maxUnavailable"))...)
	errs = append(errs, validateIntOrPercent(params.MaxSurge, false, at.Child("maxSurge"))...)
	if isZero(params.MaxUnavailable) && isZero(params.MaxSurge) {
		errs = append(errs, field.Invalid(at.Child("maxUnavailable"), params.MaxUnavailable, "cannot be 0 when maxSurge is 0 as well"))
	}
	errs = append(errs, v.hook(params.Pre, at.Child("pre"))...)
	return append(errs, v.hook(params.Post, at.Child("post"))...)
}

// validateIntOrPercent validates a number of pods, or a percentage such as "25%". If maxAll is set,
// the percentage must not exceed 100%.
func validateIntOrPercent(value *intstr.IntOrString, maxAll bool, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(value.IntVal), at)
	}
	digits, isPercent := strings.CutSuffix(value.StrVal, "%")
	percent, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case !isPercent || err != nil:
		return field.ErrorList{field.Invalid(at, value.StrVal, "must be a number or percentage (e.g. '1' or '10%')")}
	case maxAll && percent > 100:
		return field.ErrorList{field.Invalid(at, value.StrVal, "must not be greater than 100%")}
	}
	return nil
}

func (v validator) hook(hook *appsv1.LifecycleHook, at *field.Path) (errs field.ErrorList) {
	if hook == nil {
		return nil
	}
	switch hook.FailurePolicy {
	case appsv1.LifecycleHookFailurePolicyAbort, appsv1.LifecycleHookFailurePolicyIgnore, appsv1.LifecycleHookFailurePolicyRetry:
	case "":
		errs = append(errs, field.Required(at.Child("failurePolicy"), "set Abort, Ignore or Retry"))
	default:
		errs = append(errs, field.NotSupported(at.Child("failurePolicy"), hook.FailurePolicy, []appsv1.LifecycleHookFailurePolicy{
			appsv1.LifecycleHookFailurePolicyAbort, appsv1.LifecycleHookFailurePolicyIgnore, appsv1.LifecycleHookFailurePolicyRetry}))
	}
	switch {
	case hook.ExecNewPod != nil && len(hook.TagImages) > 0:
		errs = append(errs, field.Invalid(at, "<hook>", "only one of 'execNewPod' or 'tagImages' may be specified"))
	case hook.ExecNewPod != nil:
		errs = append(errs, v.exec(hook.ExecNewPod, at.Child("execNewPod"))...)
	case len(hook.TagImages) > 0:
		for i := range hook.TagImages {
			in := at.Child("tagImages").Index(i)
			if hook.TagImages[i].ContainerName == "" {
				errs = append(errs, field.Required(in.Child("containerName"), "set the container whose image is tagged"))
			}
			errs = append(errs, validateTag(&hook.TagImages[i].To, in.Child("to"))...)
		}
	default:
		errs = append(errs, field.Invalid(at, "<hook>", "one of 'execNewPod' or 'tagImages' must be specified"))
	}
	return errs
}

func (v validator) exec(exec *appsv1.ExecNewPodHook, at *field.Path) (errs field.ErrorList) {
	if len(exec.Command) == 0 {
		errs = append(errs, field.Required(at.Child("command"), "set the command of the hook"))
	}
	if exec.ContainerName == "" {
		errs = append(errs, field.Required(at.Child("containerName"), "set the container whose image the hook uses"))
	}
	for i, volume := range exec.Volumes {
		if volume == "" {
			errs = append(errs, field.Invalid(at.Child("volumes").Index(i), volume, "must not be empty"))
		}
	}
	return append(errs, v.rules.Env(exec.Env, at.Child("env"))...)
}
