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

func (v validator) strategy(strategy *appsv1.DeploymentStrategy, at *field.Path) (problems field.ErrorList) {
	switch strategy.Type {
	case appsv1.DeploymentStrategyTypeRolling, appsv1.DeploymentStrategyTypeRecreate:
	case appsv1.DeploymentStrategyTypeCustom:
		if strategy.CustomParams == nil {
			problems = append(problems, field.Required(at.Child("customParams"), "the image that deploys"))
		} else if strategy.CustomParams.Image == "" {
			problems = append(problems, field.Required(at.Child("customParams", "image"), "the image that deploys"))
		}
	default:
		problems = append(problems, field.NotSupported(at.Child("type"), strategy.Type, []appsv1.DeploymentStrategyType{
			appsv1.DeploymentStrategyTypeRolling, appsv1.DeploymentStrategyTypeRecreate, appsv1.DeploymentStrategyTypeCustom}))
	}
	if params := strategy.CustomParams; params != nil {
		problems = append(problems, v.rules.Env(params.Environment, at.Child("customParams", "environment"))...)
	}
	if params, in := strategy.RecreateParams, at.Child("recreateParams"); params != nil {
		problems = append(problems, positive(params.TimeoutSeconds, in.Child("timeoutSeconds"))...)
		problems = append(problems, v.hook(params.Pre, in.Child("pre"))...)
		problems = append(problems, v.hook(params.Mid, in.Child("mid"))...)
		problems = append(problems, v.hook(params.Post, in.Child("post"))...)
	}
	if strategy.RollingParams != nil {
		problems = append(problems, v.rolling(strategy.RollingParams, at.Child("rollingParams"))...)
	}
	problems = append(problems, metavalidation.ValidateLabels(strategy.Labels, at.Child("labels"))...)
	problems = append(problems, validation.ValidateAnnotations(strategy.Annotations, at.Child("annotations"))...)
	problems = append(problems, v.rules.Resources(&strategy.Resources, at.Child("resources"))...)
	return append(problems, positive(strategy.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
}

func (v validator) rolling(params *appsv1.RollingDeploymentStrategyParams, at *field.Path) (problems field.ErrorList) {
	problems = append(problems, positive(params.IntervalSeconds, at.Child("intervalSeconds"))...)
	problems = append(problems, positive(params.UpdatePeriodSeconds, at.Child("updatePeriodSeconds"))...)
	problems = append(problems, positive(params.TimeoutSeconds, at.Child("timeoutSeconds"))...)
	problems = append(problems, validateShare(params.MaxUnavailable, true, at.Child("maxUnavailable"))...)
	problems = append(problems, validateShare(params.MaxSurge, false, at.Child("maxSurge"))...)
	if isZero(params.MaxUnavailable) && isZero(params.MaxSurge) {
		problems = append(problems, field.Invalid(at.Child("maxUnavailable"), params.MaxUnavailable, "cannot be 0 when maxSurge is 0 as well"))
	}
	problems = append(problems, v.hook(params.Pre, at.Child("pre"))...)
	return append(problems, v.hook(params.Post, at.Child("post"))...)
}

// validateShare judges a number of pods, or a share of them such as "25%".
func validateShare(value *intstr.IntOrString, atMostAll bool, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(value.IntVal), at)
	}
	digits, isShare := strings.CutSuffix(value.StrVal, "%")
	percent, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case !isShare || err != nil:
		return field.ErrorList{field.Invalid(at, value.StrVal, "must be a number or percentage (e.g. '1' or '10%')")}
	case atMostAll && percent > 100:
		return field.ErrorList{field.Invalid(at, value.StrVal, "must not be greater than 100%")}
	}
	return nil
}

func (v validator) hook(hook *appsv1.LifecycleHook, at *field.Path) (problems field.ErrorList) {
	if hook == nil {
		return nil
	}
	switch hook.FailurePolicy {
	case appsv1.LifecycleHookFailurePolicyAbort, appsv1.LifecycleHookFailurePolicyIgnore, appsv1.LifecycleHookFailurePolicyRetry:
	case "":
		problems = append(problems, field.Required(at.Child("failurePolicy"), "Abort, Ignore or Retry"))
	default:
		problems = append(problems, field.NotSupported(at.Child("failurePolicy"), hook.FailurePolicy, []appsv1.LifecycleHookFailurePolicy{
			appsv1.LifecycleHookFailurePolicyAbort, appsv1.LifecycleHookFailurePolicyIgnore, appsv1.LifecycleHookFailurePolicyRetry}))
	}
	switch {
	case hook.ExecNewPod != nil && len(hook.TagImages) > 0:
		problems = append(problems, field.Invalid(at, "<hook>", "only one of 'execNewPod' or 'tagImages' may be specified"))
	case hook.ExecNewPod != nil:
		problems = append(problems, v.exec(hook.ExecNewPod, at.Child("execNewPod"))...)
	case len(hook.TagImages) > 0:
		for i := range hook.TagImages {
			in := at.Child("tagImages").Index(i)
			if hook.TagImages[i].ContainerName == "" {
				problems = append(problems, field.Required(in.Child("containerName"), "the container whose image is tagged"))
			}
			problems = append(problems, validateTag(&hook.TagImages[i].To, in.Child("to"))...)
		}
	default:
		problems = append(problems, field.Invalid(at, "<hook>", "one of 'execNewPod' or 'tagImages' must be specified"))
	}
	return problems
}

func (v validator) exec(exec *appsv1.ExecNewPodHook, at *field.Path) (problems field.ErrorList) {
	if len(exec.Command) == 0 {
		problems = append(problems, field.Required(at.Child("command"), "what the hook runs"))
	}
	if exec.ContainerName == "" {
		problems = append(problems, field.Required(at.Child("containerName"), "the container whose image the hook runs"))
	}
	for i, volume := range exec.Volumes {
		if volume == "" {
			problems = append(problems, field.Invalid(at.Child("volumes").Index(i), volume, "must not be empty"))
		}
	}
	return append(problems, v.rules.Env(exec.Env, at.Child("env"))...)
}
