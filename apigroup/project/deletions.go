package project

import (
	"context"
	"fmt"
	"slices"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// deletionsPluginName is the name of the admission plugin that limits how many of a user's projects
// can be terminating at the same time.
const deletionsPluginName = "slipway.io/ProjectDeletionLimit"

// maxDeletions is the maximum number of a user's projects that can be terminating at the same time.
const maxDeletions = 50

// deletions is an admission plugin that limits how many of a user's projects can be terminating at
// the same time. An object with a finalizer prevents the deletion of its project from completing.
// The namespace controller retries the deletion until the finalizer is removed. It retries only ten
// projects per second in total, so many such projects would delay the deletion of other users'
// projects.
type deletions struct {
	*admission.Handler
	feature *feature
}

var _ admission.ValidationInterface = &deletions{}

func newDeletions(f *feature) *deletions {
	return &deletions{admission.NewHandler(admission.Delete), f}
}

// Validate rejects the deletion of a project if too many other projects of the same requester are
// being deleted.
func (d *deletions) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	resource := a.GetResource().GroupResource()
	if resource != corev1.Resource("namespaces") && resource != projectv1.Resource("projects") || a.GetSubresource() != "" ||
		slices.Contains(a.GetUserInfo().GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	namespaces := d.feature.observer.namespaces
	project, err := namespaces.Get(a.GetName())
	if err != nil || project.DeletionTimestamp != nil || project.Annotations[requesterAnnotation] == "" {
		return nil //nolint:nilerr // the project does not exist, or is newer than the cache
	}
	all, err := namespaces.List(labels.Everything())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	count := 0
	for _, other := range all {
		if other.DeletionTimestamp != nil && other.Annotations[requesterAnnotation] == project.Annotations[requesterAnnotation] {
			count++
		}
	}
	if count >= maxDeletions {
		return admission.NewForbidden(a, fmt.Errorf("%d other projects of user %s are being deleted; wait, or remove the finalizers of their objects",
			count, project.Annotations[requesterAnnotation]))
	}
	return nil
}
