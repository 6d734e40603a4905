package authorization

import (
	"context"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// OpenShift's clients check the rights of their own user with subjectaccessreviews that have no
// user. A user with the right to selfsubjectaccessreviews may create those too. Reviews of other
// users need a role.

// personal allows reviews of a user's own rights.
type personal struct {
	// rights authorizes by roles.
	rights authorizer.Authorizer
}

// othersKey marks a request that only roles authorize.
type othersKey struct{}

// authorize allows subjectaccessreviews and localsubjectaccessreviews to users who may create
// selfsubjectaccessreviews. mayReview checks the content.
func (p personal) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	isReview := a.IsResourceRequest() && a.GetVerb() == "create" && a.GetAPIGroup() == authorizationv1.GroupName && a.GetSubresource() == "" &&
		(a.GetResource() == "subjectaccessreviews" || a.GetResource() == "localsubjectaccessreviews")
	if !isReview || ctx.Value(othersKey{}) != nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	decision, _, err := p.rights.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: "create", APIGroup: kubeauthorizationv1.GroupName, APIVersion: "v1", Resource: "selfsubjectaccessreviews", ResourceRequest: true,
	})
	if err != nil || decision != authorizer.DecisionAllow {
		return authorizer.DecisionNoOpinion, "", nil // roles for the reviews can still allow it
	}
	return authorizer.DecisionAllow, "users may review their own rights", nil
}
