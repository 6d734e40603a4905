package apiserver

import (
	"context"
	"regexp"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// authorizerNames matches the names with which unions of authorizers, ours and upstream's, begin
// each line of a reason.
var authorizerNames = regexp.MustCompile(`(?m)^(?:(?:kubernetes|upstream|node-graph|node|rbac): )+`)

// plainReasons removes the names of authorizers from the reasons of an authorizer. Users see the
// reasons in errors and reviews, and the structure of the server means nothing to them. Decisions
// with conditions pass unchanged.
type plainReasons struct{ authorizer.Authorizer }

// Authorize returns the decision of the authorizer.
func (p plainReasons) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := p.Authorizer.Authorize(ctx, a)
	return decision, authorizerNames.ReplaceAllString(reason, ""), err
}
