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

// strategy says what a valid project is and what its members may change of it.
type strategy struct{}

// ObjectKinds is the kind of a project.
func (strategy) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{projectv1.GroupVersion.WithKind("Project")}, false, nil
}

// Recognizes tells whether a kind is a project.
func (strategy) Recognizes(kind schema.GroupVersionKind) bool {
	return kind.Group == projectv1.GroupName
}

// GenerateName makes a name of a prefix.
func (strategy) GenerateName(prefix string) string {
	return names.SimpleNameGenerator.GenerateName(prefix)
}

// NamespaceScoped says that projects are of the cluster.
func (strategy) NamespaceScoped() bool { return false }

// PrepareForCreate leaves a new project as it is.
func (strategy) PrepareForCreate(context.Context, runtime.Object) {}

// Canonicalize leaves a project as it is.
func (strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate says that an update makes no project.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate says that an update needs a resourceVersion.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// WarningsOnCreate has none.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has none.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// PrepareForUpdate keeps what is the platform's.
func (strategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	project, previous := object.(*projectv1.Project), old.(*projectv1.Project)
	project.Spec.Finalizers, project.Status = previous.Spec.Finalizers, previous.Status
}

// Validate gives the problems of a new project.
func (strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return validate(object.(*projectv1.Project))
}

// free tells whether an annotation is one that a project's administrators may change: it only describes the project.
func free(key string) bool {
	return key == displayNameAnnotation || key == descriptionAnnotation || key == corev1.LastAppliedConfigAnnotation
}

// ValidateUpdate gives the problems of a change. What the platform and others read from a project, such as its ranges of users, its
// node selector and its labels, can be changed in the namespace only.
func (strategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	project, previous := object.(*projectv1.Project), old.(*projectv1.Project)
	errs := validation.ValidateObjectMetaUpdate(&project.ObjectMeta, &previous.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validate(project)...)
	errs = append(errs, validateLifecycle(&project.ObjectMeta, &previous.ObjectMeta, field.NewPath("metadata"))...)
	at := field.NewPath("metadata", "annotations")
	for _, pair := range [][2]map[string]string{{project.Annotations, previous.Annotations}, {previous.Annotations, project.Annotations}} {
		for key, value := range pair[0] {
			if other, ok := pair[1][key]; !free(key) && (!ok || other != value) {
				errs = append(errs, field.Invalid(at.Key(key), project.Annotations[key], "field is immutable, try updating the namespace"))
			}
		}
	}
	if !labels.Equals(project.Labels, previous.Labels) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "labels"), project.Labels, "field is immutable, try updating the namespace"))
	}
	return unique(errs)
}

// validateLifecycle gives the problems of a change of when a project ends, which is the cluster administrator's to decide:
// a finalizer would keep it for ever, and an owner would take it along.
func validateLifecycle(project, previous *metav1.ObjectMeta, at *field.Path) (errs field.ErrorList) {
	for _, one := range []struct {
		field         string
		value, before any
	}{
		{"finalizers", project.Finalizers, previous.Finalizers},
		{"ownerReferences", project.OwnerReferences, previous.OwnerReferences},
		{"deletionTimestamp", project.DeletionTimestamp, previous.DeletionTimestamp},
		{"deletionGracePeriodSeconds", project.DeletionGracePeriodSeconds, previous.DeletionGracePeriodSeconds},
	} {
		if !equality.Semantic.DeepEqual(one.value, one.before) {
			errs = append(errs, field.Invalid(at.Child(one.field), one.value, "field is immutable, try updating the namespace"))
		}
	}
	return errs
}

// unique drops errors that say the same, which the two ways of comparing annotations give.
func unique(errs field.ErrorList) field.ErrorList {
	seen := map[string]bool{}
	kept := errs[:0]
	for _, err := range errs {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			kept = append(kept, err)
		}
	}
	return kept
}

// validate gives the problems of a project by itself.
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

// validName gives the reasons why a name is none of a project: it is a label of DNS with at least two characters.
func validName(name string, prefix bool) []string {
	reasons := validation.NameIsDNSLabel(name, prefix)
	if len(name) < 2 {
		reasons = append(reasons, "must be at least 2 characters long")
	}
	return reasons
}

// parseSelector reads `key=value,key=value`.
func parseSelector(text string) (map[string]string, error) {
	return labels.ConvertSelectorToLabelsMap(text)
}
