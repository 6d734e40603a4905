// Package pull returns the pull specs of images in image streams, and checks whether a service
// account is allowed to pull from a stream.
//
// The platform's controllers can read every image stream. Before they resolve a tag for a workload,
// they check the permissions of the service account of the workload's pods. Without that check, a
// workload would disclose images of a project that the workload's author cannot read. A user who
// can use a service account in a pod can act as that account. Therefore, the check never discloses
// more than the author can already read.
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

// Verbs of the permissions on imagestreams/layers: Get allows pulling from an image stream, and
// Update allows pushing to it.
const (
	Get    = "get"
	Update = "update"
)

// Account returns the user, with groups, that represents a service account's pods in authorization
// checks.
func Account(namespace, name string) user.Info {
	account := serviceaccount.UserInfo(namespace, name, "")
	return &user.DefaultInfo{Name: account.GetName(), Groups: append(account.GetGroups(), user.AllAuthenticated)}
}

// AccountOf returns a pod's service account. The default is "default".
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

// Check reports whether a user has a permission on an image stream. The verb is Get or Update. The
// result does not depend on whether the stream exists.
type Check func(ctx context.Context, account user.Info, verb, namespace, stream string) (bool, error)

// Authorized returns a Check that uses the API server's authorizer.
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

// Reviewed returns a Check that uses access reviews.
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
	return fmt.Errorf("check permission of %q to %s imagestreams/layers %q in namespace %q: %w", account.GetName(), verb, stream, namespace, err)
}

// RecheckInterval is the interval between access checks for a trigger whose access is denied. The
// checks are periodic, because no event reports that a permission has been granted.
const RecheckInterval = time.Minute

// The reason and the condition type for workloads whose service account cannot pull from an image
// stream that one of their triggers watches.
const (
	ConditionType   = "ImageTriggersAllowed"
	ForbiddenReason = "ImageTriggerForbidden"
)

// Forbidden returns an error message that contains the missing permission and the command that
// grants it.
func Forbidden(account user.Info, namespace, stream string) string {
	return fmt.Sprintf("%s may not pull from image stream %q of project %q: an administrator of that project can grant it with: oc policy add-role-to-user system:image-puller %s -n %s",
		account.GetName(), stream, namespace, account.GetName(), namespace)
}
