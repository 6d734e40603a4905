package build

import (
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// defaultHistoryLimit is the default number of successful builds, and also of failed builds, that
// are kept for a configuration.
const defaultHistoryLimit = 5

// setConfigDefaults sets OpenShift 3's defaults.
func setConfigDefaults(config *buildv1.BuildConfig) {
	spec := &config.Spec
	if spec.RunPolicy == "" {
		spec.RunPolicy = buildv1.BuildRunPolicySerial
	}
	for _, limit := range []**int32{&spec.SuccessfulBuildsHistoryLimit, &spec.FailedBuildsHistoryLimit} {
		if *limit == nil {
			value := int32(defaultHistoryLimit)
			*limit = &value
		}
	}
	for i := range spec.Triggers {
		setTriggerDefaults(&spec.Triggers[i])
	}
	setCommonDefaults(&spec.CommonSpec)
	dropImpossibleTriggers(spec)
}

// dropImpossibleTriggers removes ImageChange triggers that watch the strategy's image if that image
// is not an image stream tag. Like OpenShift 3, it ignores such triggers instead of rejecting the
// configuration.
func dropImpossibleTriggers(spec *buildv1.BuildConfigSpec) {
	from := instantiate.From(&spec.Strategy)
	if from != nil && from.Kind == tagKind {
		return
	}
	spec.Triggers = slices.DeleteFunc(spec.Triggers, func(trigger buildv1.BuildTriggerPolicy) bool {
		return trigger.Type == buildv1.ImageChangeBuildTriggerType && trigger.ImageChange.From == nil
	})
}

func setBuildDefaults(build *buildv1.Build) { setCommonDefaults(&build.Spec.CommonSpec) }

// setTriggerDefaults replaces deprecated trigger types with current ones, and sets the default kind
// of the trigger's reference.
func setTriggerDefaults(trigger *buildv1.BuildTriggerPolicy) {
	switch trigger.Type {
	case buildv1.GitHubWebHookBuildTriggerTypeDeprecated:
		trigger.Type = buildv1.GitHubWebHookBuildTriggerType
	case buildv1.GenericWebHookBuildTriggerTypeDeprecated:
		trigger.Type = buildv1.GenericWebHookBuildTriggerType
	case buildv1.ImageChangeBuildTriggerTypeDeprecated:
		trigger.Type = buildv1.ImageChangeBuildTriggerType
	}
	if trigger.Type == buildv1.ImageChangeBuildTriggerType && trigger.ImageChange == nil {
		trigger.ImageChange = &buildv1.ImageChangeTrigger{}
	}
	if trigger.ImageChange != nil {
		setReferenceDefaults(trigger.ImageChange.From)
	}
}

func setCommonDefaults(spec *buildv1.CommonSpec) {
	if source := &spec.Source; source.Type == "" {
		source.Type = sourceType(source)
	}
	for i := range spec.Source.Images {
		setReferenceDefaults(&spec.Source.Images[i].From)
	}
	setReferenceDefaults(spec.Output.To)
	strategy := &spec.Strategy
	if strategy.Type == "" {
		strategy.Type = buildv1.BuildStrategyType(strategyText(strategy))
	}
	switch {
	case strategy.DockerStrategy != nil:
		setReferenceDefaults(strategy.DockerStrategy.From)
	case strategy.SourceStrategy != nil:
		setReferenceDefaults(&strategy.SourceStrategy.From)
	case strategy.CustomStrategy != nil:
		setReferenceDefaults(&strategy.CustomStrategy.From)
	}
}

// setReferenceDefaults completes a reference. A reference to an image stream becomes a reference to
// its "latest" tag.
func setReferenceDefaults(reference *corev1.ObjectReference) {
	if reference == nil {
		return
	}
	switch reference.Kind {
	case "":
		reference.Kind = tagKind
	case streamKind:
		reference.Kind = tagKind
		if reference.Name != "" && !strings.Contains(reference.Name, ":") {
			reference.Name += ":latest"
		}
	}
}

// streamKind is a reference kind that older clients send.
const streamKind = "ImageStream"

func sourceType(source *buildv1.BuildSource) buildv1.BuildSourceType {
	switch {
	case source.Git != nil:
		return buildv1.BuildSourceGit
	case source.Binary != nil:
		return buildv1.BuildSourceBinary
	case source.Dockerfile != nil:
		return buildv1.BuildSourceDockerfile
	case len(source.Images) > 0:
		return buildv1.BuildSourceImage
	}
	return buildv1.BuildSourceNone
}
