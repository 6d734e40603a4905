// Package pull checks whether a service account may pull from an image stream.
//
// The platform's controllers can read every image stream. Before they resolve a tag for a workload,
// they check the service account of the workload's pods. Without that check a workload would show
// its author images of a project that the author cannot read. Who may use the account in a pod may
// act as the account, so the check never shows more than the author can get.
package pull

import (
	"context"
	"fmt"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// The rights to pull from an image stream and to push to it, as verbs on imagestreams/layers.
const (
	Get    = "get"
	Update = "update"
)

// Account returns the user of pods with a service account, with its groups.
func Account(namespace, name string) user.Info {
	account := serviceaccount.UserInfo(namespace, name, "")
	return &user.DefaultInfo{Name: account.GetName(), Groups: append(account.GetGroups(), user.AllAuthenticated)}
}

// AccountOf returns the service account of pods, "default" if the specification names none.
func AccountOf(namespace string, pod *corev1.PodSpec) user.Info {
	name := pod.ServiceAccountName
	if name == "" {
		name = pod.DeprecatedServiceAccount
	}
	if name == "" {
		name = "default"
	}
	return Account(namespace, name)
}

// Check reports whether a user has a right to an image stream. The verb is Get or Update. The
// result does not depend on whether the stream exists.
type Check func(ctx context.Context, account user.Info, verb, namespace, stream string) (bool, error)

// Authorized returns a check with the authorizer of the API server.
func Authorized(by authorizer.Authorizer) Check {
	return func(ctx context.Context, account user.Info, verb, namespace, stream string) (bool, error) {
		decision, _, err := by.Authorize(ctx, authorizer.AttributesRecord{
			User: account, Verb: verb, Namespace: namespace, Name: stream, ResourceRequest: true,
			APIGroup: imagev1.GroupName, APIVersion: imagev1.GroupVersion.Version, Resource: "imagestreams", Subresource: "layers",
		})
		if decision == authorizer.DecisionAllow {
			return true, nil
		}
		return false, failure(err, account, verb, namespace, stream)
	}
}

// Reviewed returns a check with access reviews.
func Reviewed(by authorizationclient.SubjectAccessReviewsGetter) Check {
	return func(ctx context.Context, account user.Info, verb, namespace, stream string) (bool, error) {
		review := &kubeauthorizationv1.SubjectAccessReview{Spec: kubeauthorizationv1.SubjectAccessReviewSpec{
			User: account.GetName(), Groups: account.GetGroups(),
			ResourceAttributes: &kubeauthorizationv1.ResourceAttributes{
				Verb: verb, Namespace: namespace, Group: imagev1.GroupName, Version: imagev1.GroupVersion.Version,
				Resource: "imagestreams", Subresource: "layers", Name: stream,
			},
		}}
		resp, err := by.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, failure(err, account, verb, namespace, stream)
		}
		return resp.Status.Allowed, nil
	}
}

func failure(err error, account user.Info, verb, namespace, stream string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("check the right of %q to %s imagestreams/layers %q in namespace %q: %w", account.GetName(), verb, stream, namespace, err)
}

// RecheckInterval is the interval between access checks of a denied trigger. There is no event for
// a granted right.
const RecheckInterval = time.Minute

// Reason and condition type for workloads whose service account cannot pull from an image stream of
// their triggers.
const (
	ConditionType   = "ImageTriggersAllowed"
	ForbiddenReason = "ImageTriggerForbidden"
)

// Forbidden returns the message for users: the missing right, and how to grant it.
func Forbidden(account user.Info, namespace, stream string) string {
	return fmt.Sprintf("%s may not pull from image stream %q of project %q: an administrator of that project can grant it with: oc policy add-role-to-user system:image-puller %s -n %s",
		account.GetName(), stream, namespace, account.GetName(), namespace)
}
