package security

import (
	"context"
	"encoding/json"
	"fmt"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// review is a resource that can only be created: the server fills in the status and does not store
// the object.
type review struct {
	kind     func() runtime.Object
	singular string
	evaluate func(context.Context, string, runtime.Object) error
}

var _ rest.Creater = review{}

// New creates an empty review.
func (r review) New() runtime.Object { return r.kind() }

// Destroy is a no-op, because a review uses no resources that must be released.
func (review) Destroy() {}

// NamespaceScoped returns true, because the result depends on the namespace.
func (review) NamespaceScoped() bool { return true }

// GetSingularName returns the singular name.
func (r review) GetSingularName() string { return r.singular }

// Create fills in the review's status.
func (r review) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	namespace, ok := request.NamespaceFrom(ctx)
	if !ok || namespace == "" {
		return nil, apierrors.NewBadRequest("a namespace is required, because constraints use values from its annotations")
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return object, r.evaluate(ctx, namespace, object)
}

// newSubjectReviews serves podsecuritypolicysubjectreviews, which report whether a user, or the
// service account of a template, can create the template's pod.
func newSubjectReviews(evaluator *evaluator) func(apiserver.Deps) (rest.Storage, error) {
	return func(apiserver.Deps) (rest.Storage, error) {
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicySubjectReview{} }, "podsecuritypolicysubjectreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				review := object.(*securityv1.PodSecurityPolicySubjectReview)
				var subjects []user.Info
				if review.Spec.User != "" || len(review.Spec.Groups) > 0 {
					subjects = append(subjects, &user.DefaultInfo{Name: review.Spec.User, Groups: review.Spec.Groups})
				}
				if review.Spec.Template.Spec.ServiceAccountName != "" || len(subjects) == 0 {
					subjects = append(subjects, subjectOf(namespace, review.Spec.Template))
				}
				status, err := evaluator.review(ctx, namespace, review.Spec.Template, subjects)
				review.Status = status
				return err
			}}, nil
	}
}

// newSelfReviews serves podsecuritypolicyselfsubjectreviews, which report whether the request's
// user can create a template's pod.
func newSelfReviews(evaluator *evaluator) func(apiserver.Deps) (rest.Storage, error) {
	return func(apiserver.Deps) (rest.Storage, error) {
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicySelfSubjectReview{} }, "podsecuritypolicyselfsubjectreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				review := object.(*securityv1.PodSecurityPolicySelfSubjectReview)
				self, ok := request.UserFrom(ctx)
				if !ok {
					return apierrors.NewBadRequest("the request has no user")
				}
				subjects := []user.Info{self}
				if review.Spec.Template.Spec.ServiceAccountName != "" {
					subjects = append(subjects, subjectOf(namespace, review.Spec.Template))
				}
				status, err := evaluator.review(ctx, namespace, review.Spec.Template, subjects)
				review.Status = status
				return err
			}}, nil
	}
}

// newAccountReviews serves podsecuritypolicyreviews, which report the service accounts that can run
// a template's pod.
func newAccountReviews(evaluator *evaluator) func(apiserver.Deps) (rest.Storage, error) {
	return func(deps apiserver.Deps) (rest.Storage, error) {
		accounts := deps.Informers.Core().V1().ServiceAccounts().Lister()
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicyReview{} }, "podsecuritypolicyreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				review := object.(*securityv1.PodSecurityPolicyReview)
				if err := checkSize(review.Spec); err != nil {
					return err
				}
				names, err := accountNames(accounts.ServiceAccounts(namespace), review.Spec)
				if err != nil {
					return err
				}
				review.Status.AllowedServiceAccounts = []securityv1.ServiceAccountPodSecurityPolicyReviewStatus{}
				for _, name := range names {
					if err := ctx.Err(); err != nil {
						return err
					}
					template := review.Spec.Template
					template.Spec.ServiceAccountName = name
					status, err := evaluator.review(ctx, namespace, template, []user.Info{subjectOf(namespace, template)})
					if err != nil {
						return err
					}
					if status.AllowedBy != nil {
						review.Status.AllowedServiceAccounts = append(review.Status.AllowedServiceAccounts,
							securityv1.ServiceAccountPodSecurityPolicyReviewStatus{PodSecurityPolicySubjectReviewStatus: status, Name: name})
					}
				}
				return nil
			}}, nil
	}
}

// maxReviewBytes is the maximum size, in bytes, of the templates in a review's status, which
// contains a template for each service account. accountBytes is added to the size of each template
// to limit the number of evaluations, because each evaluation takes time.
const maxReviewBytes, accountBytes = 4 << 20, 4 << 10

// checkSize rejects a review whose status would be much larger than the request.
func checkSize(spec securityv1.PodSecurityPolicyReviewSpec) error {
	template, err := json.Marshal(spec.Template)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if limit := max(maxReviewBytes/(len(template)+accountBytes), 1); len(spec.ServiceAccountNames) > limit {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.serviceAccountNames: a review with this template can have at most %d service accounts; "+
			"create several reviews", limit))
	}
	return nil
}

// accountNames returns a review's service accounts. If the review does not specify service
// accounts, it returns the template's service account. It returns an error if any service account
// does not exist.
func accountNames(accounts corelisters.ServiceAccountNamespaceLister, spec securityv1.PodSecurityPolicyReviewSpec) ([]string, error) {
	names := spec.ServiceAccountNames
	if len(names) == 0 {
		name := spec.Template.Spec.ServiceAccountName
		if name == "" {
			name = "default"
		}
		names = []string{name}
	}
	for _, name := range names {
		if _, err := accounts.Get(name); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to retrieve ServiceAccount %s: %v", name, err))
		}
	}
	return names, nil
}

// notAssignable is a review's reason if the subjects are allowed to use constraints but none of
// these constraints accepts the pod. The text is the same as in OpenShift 3.11, because clients
// compare it. A warning contains the explanation.
const notAssignable = "CantAssignSecurityContextConstraintProvider"

// subjectOf returns the user of a template's service account. It omits the groups that contain all
// users: as in OpenShift 3.11, the review of a service account considers only permissions of the
// account itself.
func subjectOf(namespace string, template corev1.PodTemplateSpec) user.Info {
	name := template.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return serviceaccount.UserInfo(namespace, name, "")
}

// review evaluates a template's pod. If no constraint accepts the pod, the status contains the
// reason, and review does not return an error.
func (e *evaluator) review(ctx context.Context, namespace string, template corev1.PodTemplateSpec,
	subjects []user.Info) (securityv1.PodSecurityPolicySubjectReviewStatus, error) {
	decision, err := e.decide(ctx, namespace, podOf(namespace, template), field.NewPath("spec", "template", "spec"), subjects)
	if err != nil {
		return securityv1.PodSecurityPolicySubjectReviewStatus{}, apierrors.NewInternalError(err)
	}
	if decision.AllowedBy == nil {
		warning.AddWarning(ctx, "", decision.Reason())
		var status securityv1.PodSecurityPolicySubjectReviewStatus
		if len(decision.Objections) > 0 {
			status.Reason = notAssignable
		}
		return status, nil
	}
	status := securityv1.PodSecurityPolicySubjectReviewStatus{
		AllowedBy: &corev1.ObjectReference{
			Kind: "SecurityContextConstraints", APIVersion: securityv1.GroupVersion.String(), Name: decision.AllowedBy.Name,
			UID: decision.AllowedBy.UID,
		},
	}
	template.Spec = decision.Pod.Spec
	status.Template = template
	return status, nil
}

// podOf returns the pod that a template describes.
func podOf(namespace string, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace = namespace
	return pod
}
