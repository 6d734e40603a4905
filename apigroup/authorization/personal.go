package authorization

import (
	"context"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// OpenShift's clients check their own user's permissions with subjectaccessreviews that do not
// specify a user. A user who is allowed to create selfsubjectaccessreviews is also allowed to
// create these reviews. Reviews of other users require a role.

// personal allows users to review their own permissions.
type personal struct {
	// rights authorizes requests based only on roles.
	rights authorizer.Authorizer
}

// othersKey is the context key that marks requests about other users. Only roles authorize these
// requests.
type othersKey struct{}

// authorize allows users to create subjectaccessreviews and localsubjectaccessreviews if they are
// allowed to create selfsubjectaccessreviews. mayReview later checks the content of the review.
func (p personal) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !isReview(a) || ctx.Value(othersKey{}) != nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	decision, _, err := p.rights.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: "create", APIGroup: kubeauthorizationv1.GroupName, APIVersion: "v1", Resource: "selfsubjectaccessreviews", ResourceRequest: true,
	})
	if err != nil || decision != authorizer.DecisionAllow {
		return authorizer.DecisionNoOpinion, "", nil // a role can still allow the review
	}
	return authorizer.DecisionAllow, "users may review their own permissions", nil
}

// isReview reports whether a request creates a review of a single subject's permissions.
func isReview(a authorizer.Attributes) bool {
	return a.IsResourceRequest() && a.GetVerb() == "create" && a.GetAPIGroup() == authorizationv1.GroupName && a.GetSubresource() == "" &&
		(a.GetResource() == "subjectaccessreviews" || a.GetResource() == "localsubjectaccessreviews")
}
