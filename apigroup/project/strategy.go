package project

import (
	"context"
	"strings"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
)

// strategy validates projects and restricts the changes that project members can make.
type strategy struct{}

// ObjectKinds returns the kind of a project.
func (strategy) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{projectv1.GroupVersion.WithKind("Project")}, false, nil
}

// Recognizes reports whether a kind is in the API group of projects.
func (strategy) Recognizes(kind schema.GroupVersionKind) bool {
	return kind.Group == projectv1.GroupName
}

// GenerateName generates a name from a prefix.
func (strategy) GenerateName(prefix string) string {
	return names.SimpleNameGenerator.GenerateName(prefix)
}

// NamespaceScoped returns false: projects are cluster-scoped.
func (strategy) NamespaceScoped() bool { return false }

// PrepareForCreate is a no-op.
func (strategy) PrepareForCreate(context.Context, runtime.Object) {}

// Canonicalize is a no-op.
func (strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate returns false: an update never creates a project.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns false: an update requires a resourceVersion.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// WarningsOnCreate returns no warnings.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns no warnings.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// PrepareForUpdate restores the fields that only the platform can change.
func (strategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	project, previous := object.(*projectv1.Project), old.(*projectv1.Project)
	project.Spec.Finalizers, project.Status = previous.Spec.Finalizers, previous.Status
}

// Validate validates a new project.
func (strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validate(object.(*projectv1.Project))
}

// mutable reports whether project administrators are allowed to change an annotation. They are
// allowed to change annotations that only describe the project.
func mutable(key string) bool {
	return key == displayNameAnnotation || key == descriptionAnnotation || key == corev1.LastAppliedConfigAnnotation
}

// ValidateUpdate validates a change. Values that the platform and other clients use, such as UID
// ranges, the node selector and labels, can be changed only in the namespace.
func (strategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	project, previous := object.(*projectv1.Project), old.(*projectv1.Project)
	errs := validation.ValidateObjectMetaUpdate(&project.ObjectMeta, &previous.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validate(project)...)
	errs = append(errs, validateLifecycle(&project.ObjectMeta, &previous.ObjectMeta, field.NewPath("metadata"))...)
	at := field.NewPath("metadata", "annotations")
	for _, pair := range [][2]map[string]string{{project.Annotations, previous.Annotations}, {previous.Annotations, project.Annotations}} {
		for key, value := range pair[0] {
			if other, ok := pair[1][key]; !mutable(key) && (!ok || other != value) {
				errs = append(errs, field.Invalid(at.Key(key), project.Annotations[key], "field is immutable, try updating the namespace"))
			}
		}
	}
	if !labels.Equals(project.Labels, previous.Labels) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "labels"), project.Labels, "field is immutable, try updating the namespace"))
	}
	return unique(errs)
}

// validateLifecycle rejects changes to fields that determine when a project is deleted. Only a
// cluster administrator is allowed to change them: a finalizer could keep the project forever, and
// an owner reference could cause its deletion.
func validateLifecycle(project, previous *metav1.ObjectMeta, at *field.Path) (errs field.ErrorList) {
	for _, meta := range []struct {
		field         string
		value, before any
	}{
		{"finalizers", project.Finalizers, previous.Finalizers},
		{"ownerReferences", project.OwnerReferences, previous.OwnerReferences},
		{"deletionTimestamp", project.DeletionTimestamp, previous.DeletionTimestamp},
		{"deletionGracePeriodSeconds", project.DeletionGracePeriodSeconds, previous.DeletionGracePeriodSeconds},
	} {
		if !equality.Semantic.DeepEqual(meta.value, meta.before) {
			errs = append(errs, field.Invalid(at.Child(meta.field), meta.value, "field is immutable, try updating the namespace"))
		}
	}
	return errs
}

// unique removes duplicate errors, which occur because annotations are compared in both directions.
func unique(errs field.ErrorList) field.ErrorList {
	seen := map[string]bool{}
	result := errs[:0]
	for _, err := range errs {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			result = append(result, err)
		}
	}
	return result
}

// validate validates a project's metadata, including its display name and node selector.
func validate(project *projectv1.Project) field.ErrorList {
	errs := validation.ValidateObjectMeta(&project.ObjectMeta, false, validName, field.NewPath("metadata"))
	if strings.ContainsAny(project.Annotations[displayNameAnnotation], "\n\r\t") {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(displayNameAnnotation),
			project.Annotations[displayNameAnnotation], "must be one line"))
	}
	if text := project.Annotations[projectv1.ProjectNodeSelector]; text != "" {
		if _, err := parseSelector(text); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(projectv1.ProjectNodeSelector), text, err.Error()))
		}
	}
	return errs
}

// validName returns the reasons why a project name is invalid. A project name must be a DNS label
// with at least two characters.
func validName(name string, prefix bool) []string {
	reasons := validation.NameIsDNSLabel(name, prefix)
	if len(name) < 2 {
		reasons = append(reasons, "must be at least 2 characters long")
	}
	return reasons
}

// parseSelector parses a selector of the form `key=value,key=value`.
func parseSelector(text string) (map[string]string, error) {
	return labels.ConvertSelectorToLabelsMap(text)
}
