package authorization

import (
	"context"
	"testing"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// TestUsersReviewTheirOwnRights creates reviews as a user who is allowed to review their own
// permissions, as the administrator, and as a user without permissions.
func TestUsersReviewTheirOwnRights(t *testing.T) {
	roles := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		self := a.GetUser().GetName() == "alice" && a.GetAPIGroup() == "authorization.k8s.io" && a.GetResource() == "selfsubjectaccessreviews"
		if self || a.GetUser().GetName() == "admin" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	decider, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "personal", Authorizer: authorizer.AuthorizerFunc(personal{roles}.authorize)},
		union.NamedAuthorizer{AuthorizerName: "roles", Authorizer: roles})
	if err != nil {
		t.Fatal(err)
	}
	reviews, err := newSubjectAccess(apiserver.Deps{Authorizer: decider})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		user, about string
		groups      []string
		comes, may  bool
	}{
		{user: "alice", comes: true, may: true},
		{user: "alice", about: "bob", comes: true},
		{user: "alice", groups: []string{"system:masters"}, comes: true},
		{user: "admin", about: "bob", comes: true, may: true},
		{user: "nobody"},
	} {
		self := &user.DefaultInfo{Name: tt.user}
		ctx := request.WithUser(t.Context(), self)
		decision, _, err := decider.Authorize(ctx, authorizer.AttributesRecord{
			User: self, Verb: "create", APIGroup: authorizationv1.GroupName, Resource: "subjectaccessreviews", ResourceRequest: true,
		})
		if (decision == authorizer.DecisionAllow) != tt.comes || err != nil {
			t.Errorf("%+v: the request is decided %v, %v", tt, decision, err)
		}
		if !tt.comes {
			continue
		}
		_, err = reviews.(rest.Creater).Create(ctx, &authorizationv1.SubjectAccessReview{
			Action: authorizationv1.Action{Verb: "get", Resource: "pods"}, User: tt.about, GroupsSlice: tt.groups,
		}, nil, nil)
		if (err == nil) != tt.may || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for name, a := range map[string]authorizer.AttributesRecord{
		"another verb":  {Verb: "list", APIGroup: authorizationv1.GroupName, Resource: "subjectaccessreviews", ResourceRequest: true},
		"another group": {Verb: "create", APIGroup: "authorization.k8s.io", Resource: "subjectaccessreviews", ResourceRequest: true},
		"a subresource": {Verb: "create", APIGroup: authorizationv1.GroupName, Resource: "subjectaccessreviews", Subresource: "x", ResourceRequest: true},
		"who can":       {Verb: "create", APIGroup: authorizationv1.GroupName, Resource: "resourceaccessreviews", ResourceRequest: true},
	} {
		a.User = &user.DefaultInfo{Name: "alice"}
		if decision, _, _ := decider.Authorize(t.Context(), a); decision == authorizer.DecisionAllow {
			t.Errorf("%s is allowed", name)
		}
	}
}

func TestReviewOfReviewPermissionConcernsReviewsOfOthers(t *testing.T) {
	own := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetResource() == "selfsubjectaccessreviews" || a.GetResource() == "pods" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	decider, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "personal", Authorizer: authorizer.AuthorizerFunc(personal{own}.authorize)},
		union.NamedAuthorizer{AuthorizerName: "roles", Authorizer: own})
	if err != nil {
		t.Fatal(err)
	}
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"})
	for resource, want := range map[string]bool{"pods": true, "subjectaccessreviews": false, "localsubjectaccessreviews": false} {
		action := authorizationv1.Action{Verb: "create", Resource: resource}
		if resource != "pods" {
			action.Group = authorizationv1.GroupName
		}
		result, err := access(ctx, decider, "shop", action, "", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := result.(*authorizationv1.SubjectAccessReviewResponse).Allowed; got != want {
			t.Errorf("create %s: %t, want %t", resource, got, want)
		}
	}
}
