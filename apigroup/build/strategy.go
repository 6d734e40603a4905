package build

import (
	"strconv"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

func (v validator) strategy(strategy *buildv1.BuildStrategy, at *field.Path) (problems field.ErrorList) {
	count := 0
	if docker, in := strategy.DockerStrategy, at.Child("dockerStrategy"); docker != nil {
		count++
		if docker.From != nil {
			problems = append(problems, validateReference(docker.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		}
		problems = append(problems, validateSecret(docker.PullSecret, in.Child("pullSecret"))...)
		problems = append(problems, validateInside(docker.DockerfilePath, in.Child("dockerfilePath"))...)
		problems = append(problems, v.rules.Env(docker.Env, in.Child("env"))...)
		problems = append(problems, v.rules.Env(docker.BuildArgs, in.Child("buildArgs"))...)
	}
	if source, in := strategy.SourceStrategy, at.Child("sourceStrategy"); source != nil {
		count++
		problems = append(problems, validateReference(&source.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		problems = append(problems, validateSecret(source.PullSecret, in.Child("pullSecret"))...)
		problems = append(problems, v.rules.Env(source.Env, in.Child("env"))...)
	}
	if custom, in := strategy.CustomStrategy, at.Child("customStrategy"); custom != nil {
		count++
		problems = append(problems, validateReference(&custom.From, in.Child("from"), tagKind, imageKind, dockerKind)...)
		problems = append(problems, validateSecret(custom.PullSecret, in.Child("pullSecret"))...)
		problems = append(problems, v.rules.Env(custom.Env, in.Child("env"))...)
	}
	if pipeline, in := strategy.JenkinsPipelineStrategy, at.Child("jenkinsPipelineStrategy"); pipeline != nil {
		count++
		if pipeline.JenkinsfilePath != "" && pipeline.Jenkinsfile != "" {
			problems = append(problems, field.Invalid(in.Child("jenkinsfilePath"), pipeline.JenkinsfilePath, "only one of jenkinsfile and jenkinsfilePath may be set"))
		}
		problems = append(problems, validateInside(pipeline.JenkinsfilePath, in.Child("jenkinsfilePath"))...)
		problems = append(problems, v.rules.Env(pipeline.Env, in.Child("env"))...)
	}
	if count != 1 {
		problems = append(problems, field.Invalid(at, strategy.Type,
			"must provide a value for exactly one of sourceStrategy, customStrategy, dockerStrategy, or jenkinsPipelineStrategy"))
	}
	return problems
}

func validateTriggers(spec *buildv1.BuildConfigSpec, at *field.Path) (problems field.ErrorList) {
	watched := map[string]bool{}
	for i := range spec.Triggers {
		trigger, in := &spec.Triggers[i], at.Index(i)
		if trigger.Type == buildv1.ImageChangeBuildTriggerType {
			problems = append(problems, validateImageChange(trigger.ImageChange, instantiate.From(&spec.Strategy), watched, in.Child("imageChange"))...)
			continue
		}
		hook, name := webHook(trigger)
		switch {
		case trigger.Type == "":
			problems = append(problems, field.Required(in.Child("type"), "what starts a build"))
		case trigger.Type == buildv1.ConfigChangeBuildTriggerType:
		case name == "":
			problems = append(problems, field.Invalid(in.Child("type"), trigger.Type, "invalid trigger type"))
		case hook == nil:
			problems = append(problems, field.Required(in.Child(name), "who may call the hook"))
		case hook.Secret == "" && (hook.SecretReference == nil || hook.SecretReference.Name == ""):
			problems = append(problems, field.Required(in.Child(name, "secretReference"), "a secret that callers must know"))
		case hook.AllowEnv && trigger.Type != buildv1.GenericWebHookBuildTriggerType:
			problems = append(problems, field.Invalid(in.Child(name, "allowEnv"), strconv.FormatBool(hook.AllowEnv), "only generic hooks take environment variables"))
		}
	}
	return problems
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

// validateImageChange judges a trigger that watches a tag: by default that of the image that the build
// starts from. No tag is watched twice.
func validateImageChange(trigger *buildv1.ImageChangeTrigger, from *corev1.ObjectReference, watched map[string]bool, at *field.Path) (problems field.ErrorList) {
	if trigger == nil {
		return field.ErrorList{field.Required(at, "the image to watch")}
	}
	key := ""
	switch {
	case trigger.From != nil:
		problems = append(problems, validateReference(trigger.From, at.Child("from"), tagKind)...)
		key = trigger.From.Namespace + "/" + trigger.From.Name
	case from == nil || from.Kind != tagKind:
		return field.ErrorList{field.Invalid(at, "<from>", "a default ImageChange trigger can only be used when the build strategy includes an ImageStreamTag reference")}
	default:
		key = from.Namespace + "/" + from.Name
	}
	if watched[key] {
		problems = append(problems, field.Invalid(at, key, "multiple ImageChange triggers refer to the same image stream tag"))
	}
	watched[key] = true
	return problems
}
