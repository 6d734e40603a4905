package build

import (
	"strconv"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

func (v validator) strategy(strategy *buildv1.BuildStrategy, at *field.Path) (errs field.ErrorList) {
	count := 0
	if docker, in := strategy.DockerStrategy, at.Child("dockerStrategy"); docker != nil {
		count++
		if docker.From != nil {
			errs = append(errs, validateReference(docker.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		}
		errs = append(errs, validateSecret(docker.PullSecret, in.Child("pullSecret"))...)
		errs = append(errs, validateLocalPath(docker.DockerfilePath, in.Child("dockerfilePath"))...)
		errs = append(errs, v.rules.Env(docker.Env, in.Child("env"))...)
		errs = append(errs, v.rules.Env(docker.BuildArgs, in.Child("buildArgs"))...)
	}
	if source, in := strategy.SourceStrategy, at.Child("sourceStrategy"); source != nil {
		count++
		errs = append(errs, validateReference(&source.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		errs = append(errs, validateSecret(source.PullSecret, in.Child("pullSecret"))...)
		errs = append(errs, v.rules.Env(source.Env, in.Child("env"))...)
	}
	if custom, in := strategy.CustomStrategy, at.Child("customStrategy"); custom != nil {
		count++
		errs = append(errs, validateReference(&custom.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		errs = append(errs, validateSecret(custom.PullSecret, in.Child("pullSecret"))...)
		errs = append(errs, v.rules.Env(custom.Env, in.Child("env"))...)
	}
	if pipeline, in := strategy.JenkinsPipelineStrategy, at.Child("jenkinsPipelineStrategy"); pipeline != nil {
		count++
		if pipeline.JenkinsfilePath != "" && pipeline.Jenkinsfile != "" {
			errs = append(errs, field.Invalid(in.Child("jenkinsfilePath"), pipeline.JenkinsfilePath, "only one of jenkinsfile and jenkinsfilePath may be set"))
		}
		errs = append(errs, validateLocalPath(pipeline.JenkinsfilePath, in.Child("jenkinsfilePath"))...)
		errs = append(errs, v.rules.Env(pipeline.Env, in.Child("env"))...)
	}
	if count != 1 {
		errs = append(errs, field.Invalid(at, strategy.Type,
			"must provide a value for exactly one of sourceStrategy, customStrategy, dockerStrategy, or jenkinsPipelineStrategy"))
	}
	return errs
}

func validateTriggers(spec *buildv1.BuildConfigSpec, at *field.Path) (errs field.ErrorList) {
	watched := map[string]bool{}
	for i := range spec.Triggers {
		trigger, in := &spec.Triggers[i], at.Index(i)
		if trigger.Type == buildv1.ImageChangeBuildTriggerType {
			errs = append(errs, validateImageChange(trigger.ImageChange, instantiate.From(&spec.Strategy), watched, in.Child("imageChange"))...)
			continue
		}
		hook, name := webHook(trigger)
		switch {
		case trigger.Type == "":
			errs = append(errs, field.Required(in.Child("type"), "set the type of the trigger"))
		case trigger.Type == buildv1.ConfigChangeBuildTriggerType:
		case name == "":
			errs = append(errs, field.Invalid(in.Child("type"), trigger.Type, "invalid trigger type"))
		case hook == nil:
			errs = append(errs, field.Required(in.Child(name), "set the secret of the webhook"))
		case hook.Secret == "" && (hook.SecretReference == nil || hook.SecretReference.Name == ""):
			errs = append(errs, field.Required(in.Child(name, "secretReference"), "set the name of the secret that callers must know"))
		case hook.AllowEnv && trigger.Type != buildv1.GenericWebHookBuildTriggerType:
			errs = append(errs, field.Invalid(in.Child(name, "allowEnv"), strconv.FormatBool(hook.AllowEnv), "only generic webhooks accept environment variables"))
		}
	}
	return errs
}

func webHook(trigger *buildv1.BuildTriggerPolicy) (*buildv1.WebHookTrigger, string) {
	switch trigger.Type {
	case buildv1.GitHubWebHookBuildTriggerType:
		return trigger.GitHubWebHook, "github"
	case buildv1.GenericWebHookBuildTriggerType:
		return trigger.GenericWebHook, "generic"
	case buildv1.GitLabWebHookBuildTriggerType:
		return trigger.GitLabWebHook, "gitlab"
	case buildv1.BitbucketWebHookBuildTriggerType:
		return trigger.BitbucketWebHook, "bitbucket"
	}
	return nil, ""
}

// validateImageChange validates an ImageChange trigger. The trigger watches its own tag or, by
// default, the strategy's tag. Two triggers must not watch the same tag.
func validateImageChange(trigger *buildv1.ImageChangeTrigger, from *corev1.ObjectReference, watched map[string]bool, at *field.Path) (errs field.ErrorList) {
	if trigger == nil {
		return field.ErrorList{field.Required(at, "set the image to watch")}
	}
	key := ""
	switch {
	case trigger.From != nil:
		errs = append(errs, validateReference(trigger.From, at.Child("from"), tagKind)...)
		key = trigger.From.Namespace + "/" + trigger.From.Name
	case from == nil || from.Kind != tagKind:
		return field.ErrorList{field.Invalid(at, "<from>", "a default ImageChange trigger can only be used when the build strategy includes an ImageStreamTag reference")}
	default:
		key = from.Namespace + "/" + from.Name
	}
	if watched[key] {
		errs = append(errs, field.Invalid(at, key, "multiple ImageChange triggers refer to the same image stream tag"))
	}
	watched[key] = true
	return errs
}
