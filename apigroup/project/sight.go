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

// sight says what a user may see.
type sight struct {
	authorizer authorizer.Authorizer
}

// of is the view of a request.
func (s *sight) of(ctx context.Context, options *internalversion.ListOptions) (view, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return view{}, errNoUser
	}
	match, err := selector(options)
	if err != nil {
		return view{}, err
	}
	v := view{subjects: subjectsOf(who), match: match, scopes: scoped(who.GetExtra()[scope.ExtraKey])}
	unscoped := &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	decision, _, err := s.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: unscoped, Verb: "get", APIVersion: "v1", Resource: "namespaces", ResourceRequest: true,
	})
	v.all = err == nil && decision == authorizer.DecisionAllow
	return v, nil
}

// scoped limits what a token with scopes shows; a token without scopes is not limited.
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
