package project

import (
	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/project/standard"
)

// Annotations of a project, which are stored in its namespace.
const (
	displayNameAnnotation = standard.DisplayNameAnnotation
	descriptionAnnotation = standard.DescriptionAnnotation
	requesterAnnotation   = projectv1.ProjectRequesterAnnotation
)

// fromNamespace converts a namespace to a project. It copies everything.
func fromNamespace(namespace *corev1.Namespace) *projectv1.Project {
	copied := namespace.DeepCopy()
	return &projectv1.Project{
		ObjectMeta: copied.ObjectMeta,
		Spec:       projectv1.ProjectSpec{Finalizers: copied.Spec.Finalizers},
		Status:     projectv1.ProjectStatus{Phase: copied.Status.Phase, Conditions: copied.Status.Conditions},
	}
}

// toNamespace is the inverse of fromNamespace.
func toNamespace(project *projectv1.Project) *corev1.Namespace {
	copied := project.DeepCopy()
	return &corev1.Namespace{
		ObjectMeta: copied.ObjectMeta,
		Spec:       corev1.NamespaceSpec{Finalizers: copied.Spec.Finalizers},
		Status:     corev1.NamespaceStatus{Phase: copied.Status.Phase, Conditions: copied.Status.Conditions},
	}
}
