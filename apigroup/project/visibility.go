package project

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/oauth/scope"
)

var errNoUser = errors.New("the request has no user")

// visibility determines which projects are visible to a user.
type visibility struct {
	authorizer authorizer.Authorizer
}

// of returns the view of the namespaces that are visible to a request's user and that options
// select.
func (s *visibility) of(ctx context.Context, options *internalversion.ListOptions) (view, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return view{}, errNoUser
	}
	match, err := selector(options)
	if err != nil {
		return view{}, err
	}
	v := view{subjects: subjectsOf(u), match: match, scopes: scoped(u.GetExtra()[scope.ExtraKey])}
	unscoped := &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	decision, _, err := s.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: unscoped, Verb: "get", APIVersion: "v1", Resource: "namespaces", ResourceRequest: true,
	})
	v.all = err == nil && decision == authorizer.DecisionAllow
	return v, nil
}

// scoped returns a function that restricts the namespaces visible to a token with scopes. It
// returns nil if no restriction applies.
func scoped(scopes []string) func(namespace string) bool {
	if len(scopes) == 0 {
		return nil
	}
	some, all := scope.Namespaces(scopes)
	if all {
		return nil
	}
	return func(namespace string) bool { return slices.Contains(some, namespace) }
}
