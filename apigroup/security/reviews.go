package security

import (
	"context"
	"fmt"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// review is a resource that answers a question: it can be created, and is not kept.
type review struct {
	kind   func() runtime.Object
	single string
	answer func(context.Context, string, runtime.Object) error
}

var _ rest.Creater = review{}

// New makes an empty question.
func (r review) New() runtime.Object { return r.kind() }

// Destroy has nothing to give back.
func (review) Destroy() {}

// NamespaceScoped says that the question is asked in a namespace.
func (review) NamespaceScoped() bool { return true }

// GetSingularName is the name of one.
func (r review) GetSingularName() string { return r.single }

// Create answers the question in its status.
func (r review) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	namespace, ok := request.NamespaceFrom(ctx)
	if !ok || namespace == "" {
		return nil, apierrors.NewBadRequest("a namespace is needed, because constraints take values from it")
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return object, r.answer(ctx, namespace, object)
}

// newSubjectReviews makes podsecuritypolicysubjectreviews: could a user, or the service account of a template, make its pod?
func newSubjectReviews(judge *judge) func(apiserver.Deps) (rest.Storage, error) {
	return func(apiserver.Deps) (rest.Storage, error) {
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicySubjectReview{} }, "podsecuritypolicysubjectreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				asked := object.(*securityv1.PodSecurityPolicySubjectReview)
				var subjects []user.Info
				if asked.Spec.User != "" || len(asked.Spec.Groups) > 0 {
					subjects = append(subjects, &user.DefaultInfo{Name: asked.Spec.User, Groups: asked.Spec.Groups})
				}
				if asked.Spec.Template.Spec.ServiceAccountName != "" || len(subjects) == 0 {
					subjects = append(subjects, account(namespace, podOf(namespace, asked.Spec.Template)))
				}
				status, err := judge.review(ctx, namespace, asked.Spec.Template, subjects)
				asked.Status = status
				return err
			}}, nil
	}
}

// newSelfReviews makes podsecuritypolicyselfsubjectreviews: could whoever asks make the pod of a template?
func newSelfReviews(judge *judge) func(apiserver.Deps) (rest.Storage, error) {
	return func(apiserver.Deps) (rest.Storage, error) {
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicySelfSubjectReview{} }, "podsecuritypolicyselfsubjectreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				asked := object.(*securityv1.PodSecurityPolicySelfSubjectReview)
				self, ok := request.UserFrom(ctx)
				if !ok {
					return apierrors.NewBadRequest("the request has no user")
				}
				subjects := []user.Info{self, account(namespace, podOf(namespace, asked.Spec.Template))}
				status, err := judge.review(ctx, namespace, asked.Spec.Template, subjects)
				asked.Status = status
				return err
			}}, nil
	}
}

// newAccountReviews makes podsecuritypolicyreviews: which of the service accounts could run the pod of a template?
func newAccountReviews(judge *judge) func(apiserver.Deps) (rest.Storage, error) {
	return func(deps apiserver.Deps) (rest.Storage, error) {
		accounts := deps.Informers.Core().V1().ServiceAccounts().Lister()
		return review{func() runtime.Object { return &securityv1.PodSecurityPolicyReview{} }, "podsecuritypolicyreview",
			func(ctx context.Context, namespace string, object runtime.Object) error {
				asked := object.(*securityv1.PodSecurityPolicyReview)
				names, err := accountNames(accounts.ServiceAccounts(namespace), asked.Spec)
				if err != nil {
					return err
				}
				asked.Status.AllowedServiceAccounts = []securityv1.ServiceAccountPodSecurityPolicyReviewStatus{}
				for _, name := range names {
					template := asked.Spec.Template
					template.Spec.ServiceAccountName = name
					status, err := judge.review(ctx, namespace, template, []user.Info{account(namespace, podOf(namespace, template))})
					if err != nil {
						return err
					}
					if status.AllowedBy != nil {
						asked.Status.AllowedServiceAccounts = append(asked.Status.AllowedServiceAccounts,
							securityv1.ServiceAccountPodSecurityPolicyReviewStatus{PodSecurityPolicySubjectReviewStatus: status, Name: name})
					}
				}
				return nil
			}}, nil
	}
}

// accountNames are the service accounts that are asked about, which must exist: those that the question names, or else the
// template's.
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
			return nil, apierrors.NewBadRequest(fmt.Sprintf("find service account %q: %v", name, err))
		}
	}
	return names, nil
}

// review decides on a template's pod. No constraint that accepts it is no error: the reason says why.
func (j *judge) review(ctx context.Context, namespace string, template corev1.PodTemplateSpec, subjects []user.Info) (securityv1.PodSecurityPolicySubjectReviewStatus, error) {
	decision, err := j.decide(ctx, namespace, podOf(namespace, template), field.NewPath("spec", "template", "spec"), subjects)
	if err != nil {
		return securityv1.PodSecurityPolicySubjectReviewStatus{}, apierrors.NewInternalError(err)
	}
	if decision.AllowedBy == nil {
		return securityv1.PodSecurityPolicySubjectReviewStatus{Reason: decision.Reason()}, nil
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

// podOf is the pod that a template makes.
func podOf(namespace string, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace = namespace
	return pod
}
