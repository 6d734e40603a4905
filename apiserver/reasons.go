package apiserver

import (
	"context"
	"regexp"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// authorizerNames matches the names that Slipway's and upstream's unions of authorizers prepend to
// each line of a reason.
var authorizerNames = regexp.MustCompile(`(?m)^(?:(?:kubernetes|upstream|node-graph|node|rbac): )+`)

// plainReasons removes the authorizer names from an authorizer's reasons, because users see the
// reasons in errors and reviews, where the internal structure of the server is meaningless.
// Decisions with conditions are passed on unchanged.
type plainReasons struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (p plainReasons) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := p.Authorizer.Authorize(ctx, a)
	return decision, authorizerNames.ReplaceAllString(reason, ""), err
}
