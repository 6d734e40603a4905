package authorization

import (
	"context"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	kubeauthorization "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Clients of OpenShift ask what their own user may do with the reviews that are made for others, and leave the user out.
// Whoever may ask Kubernetes about himself may ask so too; about others asks who has a role for these reviews.

// personal lets users make reviews about themselves.
type personal struct {
	// rights decides by roles.
	rights authorizer.Authorizer
}

// othersKey marks a question that roles alone decide.
type othersKey struct{}

// authorize allows subjectaccessreviews and localsubjectaccessreviews to whoever may ask about himself. What is asked is looked at
// by mayAsk.
func (p personal) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asks := a.IsResourceRequest() && a.GetVerb() == "create" && a.GetAPIGroup() == authorizationv1.GroupName && a.GetSubresource() == "" &&
		(a.GetResource() == "subjectaccessreviews" || a.GetResource() == "localsubjectaccessreviews")
	if !asks || ctx.Value(othersKey{}) != nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	decision, _, err := p.rights.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUser(), Verb: "create", APIGroup: kubeauthorization.GroupName, APIVersion: "v1", Resource: "selfsubjectaccessreviews", ResourceRequest: true,
	})
	if err != nil || decision != authorizer.DecisionAllow {
		return authorizer.DecisionNoOpinion, "", nil // roles for the reviews themselves may still allow it
	}
	return authorizer.DecisionAllow, "a user may ask about himself", nil
}
