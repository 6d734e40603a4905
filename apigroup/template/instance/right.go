package instance

import (
	"context"
	"fmt"

	templatev1 "github.com/openshift/api/template/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func attributes(verb, group, resource, namespace, name string) kubeauthorizationv1.ResourceAttributes {
	return kubeauthorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
}

// mayCreate checks that a requester is allowed to create an object.
func (l *reconciler) mayCreate(ctx context.Context, requester *templatev1.TemplateInstanceRequester, item item) error {
	resource := item.mapping.Resource
	return l.may(ctx, requester, attributes("create", resource.Group, resource.Resource, item.object.GetNamespace(), item.object.GetName()))
}

// may returns an error if a requester lacks a permission.
func (l *reconciler) may(ctx context.Context, requester *templatev1.TemplateInstanceRequester,
	attributes kubeauthorizationv1.ResourceAttributes) error {
	review := &kubeauthorizationv1.SubjectAccessReview{Spec: kubeauthorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes, User: requester.Username, UID: requester.UID, Groups: requester.Groups,
		Extra: map[string]kubeauthorizationv1.ExtraValue{},
	}}
	for key, values := range requester.Extra {
		review.Spec.Extra[key] = kubeauthorizationv1.ExtraValue(values)
	}
	result, err := l.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("check permission of %q: %w", requester.Username, err)
	}
	if !result.Status.Allowed {
		return final(fmt.Errorf("user %q may not %s %s %q in project %q",
			requester.Username, attributes.Verb, attributes.Resource, attributes.Name, attributes.Namespace))
	}
	return nil
}
