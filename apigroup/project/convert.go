package project

import (
	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
)

// Annotations of a project, which are its namespace's.
const (
	displayNameAnnotation = standard.DisplayNameAnnotation
	descriptionAnnotation = standard.DescriptionAnnotation
	requesterAnnotation   = projectv1.ProjectRequesterAnnotation
)

// fromNamespace shows a namespace as a project. Nothing of it is shared.
func fromNamespace(namespace *corev1.Namespace) *projectv1.Project {
	own := namespace.DeepCopy()
	return &projectv1.Project{
		ObjectMeta: own.ObjectMeta,
		Spec:       projectv1.ProjectSpec{Finalizers: own.Spec.Finalizers},
		Status:     projectv1.ProjectStatus{Phase: own.Status.Phase, Conditions: own.Status.Conditions},
	}
}

// toNamespace is the inverse of fromNamespace.
func toNamespace(project *projectv1.Project) *corev1.Namespace {
	own := project.DeepCopy()
	return &corev1.Namespace{
		ObjectMeta: own.ObjectMeta,
		Spec:       corev1.NamespaceSpec{Finalizers: own.Spec.Finalizers},
		Status:     corev1.NamespaceStatus{Phase: own.Status.Phase, Conditions: own.Status.Conditions},
	}
}
