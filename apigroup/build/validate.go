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

// Kinds of image references.
const (
	tagKind    = instantiate.TagKind
	imageKind  = instantiate.ImageKind
	dockerKind = instantiate.DockerKind
)

// validator applies OpenShift's and Kubernetes' validation rules.
type validator struct{ rules Rules }

func (v validator) config(_ context.Context, config, _ *buildv1.BuildConfig) (errs field.ErrorList) {
	spec, at := &config.Spec, field.NewPath("spec")
	policies := []buildv1.BuildRunPolicy{buildv1.BuildRunPolicyParallel, buildv1.BuildRunPolicySerial, buildv1.BuildRunPolicySerialLatestOnly}
	if !slices.Contains(policies, spec.RunPolicy) {
		errs = append(errs, field.NotSupported(at.Child("runPolicy"), spec.RunPolicy, policies))
	}
	for name, limit := range map[string]*int32{
		"successfulBuildsHistoryLimit": spec.SuccessfulBuildsHistoryLimit, "failedBuildsHistoryLimit": spec.FailedBuildsHistoryLimit,
	} {
		if limit != nil {
			errs = append(errs, validation.ValidateNonnegativeField(int64(*limit), at.Child(name))...)
		}
	}
	errs = append(errs, validateTriggers(spec, at.Child("triggers"))...)
	return append(errs, v.common(&spec.CommonSpec, at)...)
}

// build rejects changes to the spec, except to the fields that the builder and the controllers set.
// It also rejects changes to the phase of a finished build.
func (v validator) build(_ context.Context, build, old *buildv1.Build) (errs field.ErrorList) {
	if old == nil {
		return v.common(&build.Spec.CommonSpec, field.NewPath("spec"))
	}
	if !apiequality.Semantic.DeepEqual(withoutRevision(build.Spec), withoutRevision(old.Spec)) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), "content of spec is not printed out, please refer to the \"details\"", "spec is immutable"))
	}
	if instantiate.Ended(old) && build.Status.Phase != old.Status.Phase {
		errs = append(errs, field.Invalid(field.NewPath("status", "phase"), build.Status.Phase, "phase cannot be updated from a terminal state"))
	}
	return errs
}

// withoutRevision returns a spec without the mutable fields.
func withoutRevision(spec buildv1.BuildSpec) buildv1.BuildSpec {
	spec.Revision, spec.CompletionDeadlineSeconds = nil, nil
	return spec
}

func (v validator) common(spec *buildv1.CommonSpec, at *field.Path) (errs field.ErrorList) {
	errs = append(errs, v.source(&spec.Source, at.Child("source"))...)
	errs = append(errs, v.strategy(&spec.Strategy, at.Child("strategy"))...)
	errs = append(errs, validateOutput(&spec.Output, at.Child("output"))...)
	errs = append(errs, v.rules.Resources(&spec.Resources, at.Child("resources"))...)
	if deadline := spec.CompletionDeadlineSeconds; deadline != nil && *deadline <= 0 {
		errs = append(errs, field.Invalid(at.Child("completionDeadlineSeconds"), *deadline, "completionDeadlineSeconds must be a positive integer greater than 0"))
	}
	hook := &spec.PostCommit
	if hook.Script != "" && len(hook.Command) > 0 {
		errs = append(errs, field.Invalid(at.Child("postCommit"), "<postCommit>", "cannot use command and script together"))
	}
	return append(errs, metavalidation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
}

func validateOutput(output *buildv1.BuildOutput, at *field.Path) (errs field.ErrorList) {
	if output.To != nil {
		errs = append(errs, validateReference(output.To, at.Child("to"), tagKind, dockerKind)...)
	}
	errs = append(errs, validateSecret(output.PushSecret, at.Child("pushSecret"))...)
	seen := map[string]bool{}
	for i, label := range output.ImageLabels {
		in := at.Child("imageLabels").Index(i).Child("name")
		switch {
		case label.Name == "":
			errs = append(errs, field.Required(in, "set the name of the label"))
		case seen[label.Name]:
			errs = append(errs, field.Duplicate(in, label.Name))
		}
		seen[label.Name] = true
	}
	return errs
}

// validateReference validates an image reference, which must have one of the given kinds.
func validateReference(reference *corev1.ObjectReference, at *field.Path, kinds ...string) (errs field.ErrorList) {
	if !slices.Contains(kinds, reference.Kind) {
		return field.ErrorList{field.NotSupported(at.Child("kind"), reference.Kind, kinds)}
	}
	if namespace := reference.Namespace; namespace != "" {
		for _, reason := range validation.ValidateNamespaceName(namespace, false) {
			errs = append(errs, field.Invalid(at.Child("namespace"), namespace, reason))
		}
	}
	name := reference.Name
	separator := map[string]string{tagKind: ":", imageKind: "@"}[reference.Kind]
	before, after, ok := strings.Cut(name, separator)
	switch {
	case name == "":
		errs = append(errs, field.Required(at.Child("name"), "set the name of the image"))
	case strings.ContainsAny(name, " \t\n"):
		errs = append(errs, field.Invalid(at.Child("name"), name, "must be a valid image reference"))
	case separator != "" && (!ok || before == "" || after == "" || strings.Contains(after, separator)):
		errs = append(errs, field.Invalid(at.Child("name"), name, reference.Kind+" object references must be in the form <name>"+separator+"<"+map[string]string{":": "tag", "@": "id"}[separator]+">"))
	}
	return errs
}

func validateSecret(secret *corev1.LocalObjectReference, at *field.Path) field.ErrorList {
	if secret != nil && secret.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "set the name of the secret")}
	}
	return nil
}
