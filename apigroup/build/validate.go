package build

import (
	"context"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// The kinds of images that builds refer to.
const (
	tagKind    = instantiate.TagKind
	imageKind  = instantiate.ImageKind
	dockerKind = instantiate.DockerKind
)

// validator judges builds by OpenShift's rules and Kubernetes'.
type validator struct{ rules Rules }

func (v validator) config(_ context.Context, config, _ *buildv1.BuildConfig) (problems field.ErrorList) {
	spec, at := &config.Spec, field.NewPath("spec")
	policies := []buildv1.BuildRunPolicy{buildv1.BuildRunPolicyParallel, buildv1.BuildRunPolicySerial, buildv1.BuildRunPolicySerialLatestOnly}
	if !slices.Contains(policies, spec.RunPolicy) {
		problems = append(problems, field.NotSupported(at.Child("runPolicy"), spec.RunPolicy, policies))
	}
	for name, limit := range map[string]*int32{
		"successfulBuildsHistoryLimit": spec.SuccessfulBuildsHistoryLimit, "failedBuildsHistoryLimit": spec.FailedBuildsHistoryLimit,
	} {
		if limit != nil {
			problems = append(problems, validation.ValidateNonnegativeField(int64(*limit), at.Child(name))...)
		}
	}
	problems = append(problems, validateTriggers(spec, at.Child("triggers"))...)
	return append(problems, v.common(&spec.CommonSpec, at)...)
}

// build refuses every change of what is built: a build is a record.
func (v validator) build(_ context.Context, build, old *buildv1.Build) (problems field.ErrorList) {
	if old == nil {
		return v.common(&build.Spec.CommonSpec, field.NewPath("spec"))
	}
	if !apiequality.Semantic.DeepEqual(changeable(build.Spec), changeable(old.Spec)) {
		problems = append(problems, field.Invalid(field.NewPath("spec"), "content of spec is not printed out, please refer to the \"details\"", "spec is immutable"))
	}
	if instantiate.Ended(old) && build.Status.Phase != old.Status.Phase {
		problems = append(problems, field.Invalid(field.NewPath("status", "phase"), build.Status.Phase, "phase cannot be updated from a terminal state"))
	}
	return problems
}

// changeable is a specification without what is learned while the build runs.
func changeable(spec buildv1.BuildSpec) buildv1.BuildSpec {
	spec.Revision, spec.CompletionDeadlineSeconds = nil, nil
	return spec
}

func (v validator) common(spec *buildv1.CommonSpec, at *field.Path) (problems field.ErrorList) {
	problems = append(problems, v.source(&spec.Source, at.Child("source"))...)
	problems = append(problems, v.strategy(&spec.Strategy, at.Child("strategy"))...)
	problems = append(problems, validateOutput(&spec.Output, at.Child("output"))...)
	problems = append(problems, v.rules.Resources(&spec.Resources, at.Child("resources"))...)
	if deadline := spec.CompletionDeadlineSeconds; deadline != nil && *deadline <= 0 {
		problems = append(problems, field.Invalid(at.Child("completionDeadlineSeconds"), *deadline, "completionDeadlineSeconds must be a positive integer greater than 0"))
	}
	hook := &spec.PostCommit
	if hook.Script != "" && len(hook.Command) > 0 {
		problems = append(problems, field.Invalid(at.Child("postCommit"), "<postCommit>", "cannot use command and script together"))
	}
	return append(problems, metavalidation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
}

func validateOutput(output *buildv1.BuildOutput, at *field.Path) (problems field.ErrorList) {
	if output.To != nil {
		problems = append(problems, validateReference(output.To, at.Child("to"), tagKind, dockerKind)...)
	}
	problems = append(problems, validateSecret(output.PushSecret, at.Child("pushSecret"))...)
	seen := map[string]bool{}
	for i, label := range output.ImageLabels {
		in := at.Child("imageLabels").Index(i).Child("name")
		switch {
		case label.Name == "":
			problems = append(problems, field.Required(in, "name the label"))
		case seen[label.Name]:
			problems = append(problems, field.Duplicate(in, label.Name))
		}
		seen[label.Name] = true
	}
	return problems
}

// validateReference judges a reference to an image, which is one of kinds.
func validateReference(reference *corev1.ObjectReference, at *field.Path, kinds ...string) (problems field.ErrorList) {
	if !slices.Contains(kinds, reference.Kind) {
		return field.ErrorList{field.NotSupported(at.Child("kind"), reference.Kind, kinds)}
	}
	if namespace := reference.Namespace; namespace != "" {
		for _, reason := range validation.ValidateNamespaceName(namespace, false) {
			problems = append(problems, field.Invalid(at.Child("namespace"), namespace, reason))
		}
	}
	name := reference.Name
	separator := map[string]string{tagKind: ":", imageKind: "@"}[reference.Kind]
	before, after, found := strings.Cut(name, separator)
	switch {
	case name == "":
		problems = append(problems, field.Required(at.Child("name"), "name the image"))
	case strings.ContainsAny(name, " \t\n"):
		problems = append(problems, field.Invalid(at.Child("name"), name, "must be a valid image reference"))
	case separator != "" && (!found || before == "" || after == "" || strings.Contains(after, separator)):
		problems = append(problems, field.Invalid(at.Child("name"), name, reference.Kind+" object references must be in the form <name>"+separator+"<"+map[string]string{":": "tag", "@": "id"}[separator]+">"))
	}
	return problems
}

func validateSecret(secret *corev1.LocalObjectReference, at *field.Path) field.ErrorList {
	if secret != nil && secret.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "name the secret")}
	}
	return nil
}
