package pull

import (
	"context"
	"errors"
	"slices"
	"testing"

	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestAccountOfPods(t *testing.T) {
	for want, spec := range map[string]corev1.PodSpec{
		"system:serviceaccount:shop:default": {},
		"system:serviceaccount:shop:web":     {ServiceAccountName: "web", DeprecatedServiceAccount: "old"},
		"system:serviceaccount:shop:old":     {DeprecatedServiceAccount: "old"},
	} {
		account := AccountOf("shop", &spec)
		if account.GetName() != want || !slices.Contains(account.GetGroups(), "system:serviceaccounts:shop") || !slices.Contains(account.GetGroups(), "system:authenticated") {
			t.Errorf("pods of %+v pull as %q in %v", spec, account.GetName(), account.GetGroups())
		}
	}
}

func TestChecksRequireSameRight(t *testing.T) {
	attributes := authorizer.AttributesRecord{
		User: Account("evil", "default"), Verb: Get, Namespace: "shop", Name: "app", ResourceRequest: true,
		APIGroup: "image.openshift.io", APIVersion: "v1", Resource: "imagestreams", Subresource: "layers",
	}
	decide := func(user string, a authorizer.AttributesRecord) bool {
		a.User = attributes.User
		want := attributes
		return user == attributes.User.GetName() && a.Verb == want.Verb && a.Namespace == want.Namespace && a.Name == want.Name && a.APIGroup == want.APIGroup &&
			a.Resource == want.Resource && a.Subresource == want.Subresource
	}
	kube := fake.NewClientset()
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().DeepCopyObject().(*kubeauthorizationv1.SubjectAccessReview)
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = decide(review.Spec.User, authorizer.AttributesRecord{
			Verb: a.Verb, Namespace: a.Namespace, Name: a.Name, APIGroup: a.Group, Resource: a.Resource, Subresource: a.Subresource})
		return true, review, nil
	})
	checks := map[string]Check{
		"reviewed": Reviewed(kube.AuthorizationV1()),
		"authorized": Authorized(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if decide(a.GetUser().GetName(), a.(authorizer.AttributesRecord)) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		})),
	}
	for name, check := range checks {
		for _, tt := range []struct {
			account, verb, namespace, stream string
			want                             bool
		}{
			{"default", Get, "shop", "app", true},
			{"other", Get, "shop", "app", false},
			{"default", Update, "shop", "app", false},
			{"default", Get, "bank", "app", false},
			{"default", Get, "shop", "db", false},
		} {
			if got, err := check(t.Context(), Account("evil", tt.account), tt.verb, tt.namespace, tt.stream); got != tt.want || err != nil {
				t.Errorf("%s: %+v: %v, %v", name, tt, got, err)
			}
		}
	}
}

func TestFailedAuthorizerDeniesAccess(t *testing.T) {
	check := Authorized(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", errors.New("no response")
	}))
	if may, err := check(t.Context(), Account("evil", "default"), Get, "shop", "app"); may || err == nil {
		t.Errorf("allowed: %v, error: %v", may, err)
	}
}
