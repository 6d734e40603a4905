package project

import (
	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
)

// Annotations of a project, which are stored in the project's namespace.
const (
	displayNameAnnotation = standard.DisplayNameAnnotation
	descriptionAnnotation = standard.DescriptionAnnotation
	requesterAnnotation   = projectv1.ProjectRequesterAnnotation
)

// fromNamespace converts a namespace to a project. The project shares no memory with the namespace.
func fromNamespace(namespace *corev1.Namespace) *projectv1.Project {
	source := namespace.DeepCopy()
	return &projectv1.Project{
		ObjectMeta: source.ObjectMeta,
		Spec:       projectv1.ProjectSpec{Finalizers: source.Spec.Finalizers},
		Status:     projectv1.ProjectStatus{Phase: source.Status.Phase, Conditions: source.Status.Conditions},
	}
}

// toNamespace is the inverse of fromNamespace.
func toNamespace(project *projectv1.Project) *corev1.Namespace {
	source := project.DeepCopy()
	return &corev1.Namespace{
		ObjectMeta: source.ObjectMeta,
		Spec:       corev1.NamespaceSpec{Finalizers: source.Spec.Finalizers},
		Status:     corev1.NamespaceStatus{Phase: source.Status.Phase, Conditions: source.Status.Conditions},
	}
}
