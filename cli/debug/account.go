package debug

import (
	"cmp"
	"context"
	"fmt"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// checkAccount returns an error if the source's service account cannot run its pods. The debug pod
// does not show this problem, because it gets the security context constraints of the user who runs
// the command. checkAccount returns no error if the server does not support
// PodSecurityPolicySubjectReviews, or if the user is not allowed to create them in the project.
func (d *debugging) checkAccount(ctx context.Context, namespace string) error {
	if d.source == nil || d.withMyRights {
		return nil
	}
	account := cmp.Or(d.source.ServiceAccountName, "default")
	review, err := d.review(ctx, namespace, &securityv1.PodSecurityPolicySubjectReview{Spec: securityv1.PodSecurityPolicySubjectReviewSpec{
		Template: corev1.PodTemplateSpec{Spec: *d.source}, User: serviceaccount.MakeUsername(namespace, account),
		Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("review the permissions of service account %q: %w", account, err)
	case review.Status.AllowedBy == nil:
		return fmt.Errorf("service account %q is not allowed to run these pods; check which permissions the pods request, and add --with-my-rights to run them with your permissions", account)
	}
	return nil
}
