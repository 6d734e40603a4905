package authorization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/oauth/scope"
)

// review is a resource that can only be created: the server returns the result and stores nothing.
type review struct {
	kind       func() runtime.Object
	singular   string
	namespaced bool
	evaluate   func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error)
}

var _ rest.Creater = review{}

// New creates an empty review.
func (r review) New() runtime.Object { return r.kind() }

// Destroy is a no-op.
func (review) Destroy() {}

// NamespaceScoped reports whether the review is namespaced.
func (r review) NamespaceScoped() bool { return r.namespaced }

// GetSingularName returns the singular name.
func (r review) GetSingularName() string { return r.singular }

// Create returns the result of a review.
func (r review) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return r.evaluate(ctx, request.NamespaceValue(ctx), object)
}

// subject returns a review's subject. The default is the request's user. Scopes restrict the
// subject in the same way as they restrict a token.
func subject(ctx context.Context, name string, groups, scopes []string) (user.Info, error) {
	u := &user.DefaultInfo{Name: name, Groups: groups}
	if name == "" && len(groups) == 0 {
		self, ok := request.UserFrom(ctx)
		if !ok {
			return nil, errors.New("the request has no user")
		}
		u = &user.DefaultInfo{Name: self.GetName(), UID: self.GetUID(), Groups: self.GetGroups(), Extra: self.GetExtra()}
		if scopes == nil { // the request's token determines the scopes
			return u, nil
		}
	}
	scopes = slices.Compact(slices.Sorted(slices.Values(scopes)))
	size := 0
	for _, text := range scopes {
		if err := scope.Validate(text); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		size += len(text) + 1
	}
	// A token's scopes never exceed this limit. The limit is necessary because a review evaluates
	// each scope for each of the user's permissions.
	if size > scope.MaxParameter {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("scopes: must have at most %d bytes in all", scope.MaxParameter))
	}
	u.Extra = map[string][]string{}
	if len(scopes) > 0 {
		u.Extra[scope.ExtraKey] = scopes
	}
	return u, nil
}

// newSubjectAccess serves subjectaccessreviews, which report whether a subject has a permission in
// a namespace or in the cluster.
func newSubjectAccess(deps apiserver.Deps) (rest.Storage, error) {
	return review{func() runtime.Object { return &authorizationv1.SubjectAccessReview{} }, "subjectaccessreview", false,
		func(ctx context.Context, _ string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.SubjectAccessReview)
			if err := mayReview(ctx, deps.Authorizer, "subjectaccessreviews", "", review.User, review.GroupsSlice); err != nil {
				return nil, err
			}
			return access(ctx, deps.Authorizer, review.Action.Namespace, review.Action, review.User, review.GroupsSlice, review.Scopes)
		}}, nil
}

// newLocalSubjectAccess serves localsubjectaccessreviews, which report whether a subject has a
// permission in the request's namespace.
func newLocalSubjectAccess(deps apiserver.Deps) (rest.Storage, error) {
	return review{func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} }, "localsubjectaccessreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.LocalSubjectAccessReview)
			if err := sameNamespace(namespace, review.Action); err != nil {
				return nil, err
			}
			if err := mayReview(ctx, deps.Authorizer, "localsubjectaccessreviews", namespace, review.User, review.GroupsSlice); err != nil {
				return nil, err
			}
			return access(ctx, deps.Authorizer, namespace, review.Action, review.User, review.GroupsSlice, review.Scopes)
		}}, nil
}

// mayReview rejects a review of another subject if the user is allowed to review only their own
// permissions (see personal). It also rejects the review if only the user:check-access scope allows
// the request. That scope permits only reviews of the token's own user.
func mayReview(ctx context.Context, decider authorizer.Authorizer, resource, namespace, name string, groups []string) error {
	self, ok := request.UserFrom(ctx)
	if !ok || name == "" && len(groups) == 0 {
		return nil
	}
	u := withoutOwnReviews(self)
	action := authorizationv1.Action{Verb: "create", Group: authorizationv1.GroupName, Resource: resource}
	decision, _, err := decider.Authorize(context.WithValue(ctx, othersKey{}, true), attributes(u, namespace, action))
	if err == nil && decision == authorizer.DecisionAllow {
		return nil
	}
	return apierrors.NewForbidden(authorizationv1.Resource(resource), "",
		fmt.Errorf("user %q may only review their own permissions; leave user and groups empty", self.GetName()))
}

// withoutOwnReviews returns a copy of a user without the user:check-access scope, which permits
// only reviews of the user's own permissions.
func withoutOwnReviews(u user.Info) user.Info {
	scopes := u.GetExtra()[scope.ExtraKey]
	if !slices.Contains(scopes, scope.CheckAccess) {
		return u
	}
	rest := slices.DeleteFunc(slices.Clone(scopes), func(text string) bool { return text == scope.CheckAccess })
	return &user.DefaultInfo{
		Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: map[string][]string{scope.ExtraKey: rest},
	}
}

// sameNamespace rejects a local review of another namespace, because the user might not be allowed
// to create reviews there.
func sameNamespace(namespace string, action authorizationv1.Action) error {
	if action.Namespace != "" && action.Namespace != namespace {
		return apierrors.NewBadRequest("namespace: must be empty or the namespace of the request, " + namespace)
	}
	return nil
}

func access(ctx context.Context, decider authorizer.Authorizer, namespace string, action authorizationv1.Action, name string,
	groups, scopes []string) (runtime.Object, error) {
	if action.Verb == "" || action.Resource == "" && !action.IsNonResourceURL {
		return nil, apierrors.NewBadRequest("verb and resource must be named")
	}
	u, err := subject(ctx, name, groups, scopes)
	if err != nil {
		return nil, err
	}
	a := attributes(u, namespace, action)
	if isReview(a) { // as in OpenShift 3, the result applies to reviews of other users
		ctx = context.WithValue(ctx, othersKey{}, true)
		a = attributes(withoutOwnReviews(u), namespace, action)
	}
	decision, reason, err := decider.Authorize(ctx, a)
	resp := &authorizationv1.SubjectAccessReviewResponse{
		Namespace: namespace, Allowed: decision == authorizer.DecisionAllow, Reason: reason,
	}
	if err != nil {
		resp.EvaluationError = err.Error()
	}
	return resp, nil
}

func attributes(u user.Info, namespace string, action authorizationv1.Action) authorizer.Attributes {
	resource, subresource, _ := strings.Cut(action.Resource, "/")
	return authorizer.AttributesRecord{
		User: u, Verb: action.Verb, Namespace: namespace, APIGroup: action.Group, APIVersion: action.Version, Resource: resource,
		Subresource: subresource, Name: action.ResourceName, Path: action.Path, ResourceRequest: !action.IsNonResourceURL,
	}
}

// newResourceAccess serves resourceaccessreviews, which list the subjects that have a permission in
// a namespace or in the cluster.
func newResourceAccess(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.ResourceAccessReview{} }, "resourceaccessreview", false,
		func(_ context.Context, _ string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.ResourceAccessReview)
			return l.review(review.Action.Namespace, review.Action)
		}}, nil
}

// newLocalResourceAccess serves localresourceaccessreviews, which list the subjects that have a
// permission in the request's namespace.
func newLocalResourceAccess(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.LocalResourceAccessReview{} }, "localresourceaccessreview", true,
		func(_ context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.LocalResourceAccessReview)
			if err := sameNamespace(namespace, review.Action); err != nil {
				return nil, err
			}
			return l.review(namespace, review.Action)
		}}, nil
}

func (l *locator) review(namespace string, action authorizationv1.Action) (runtime.Object, error) {
	if action.Verb == "" || action.Resource == "" && !action.IsNonResourceURL {
		return nil, apierrors.NewBadRequest("verb and resource must be named")
	}
	rule := rbacv1.PolicyRule{Verbs: []string{action.Verb}}
	if action.IsNonResourceURL {
		rule.NonResourceURLs = []string{action.Path}
	} else {
		rule.APIGroups, rule.Resources = []string{action.Group}, []string{action.Resource}
		if action.ResourceName != "" {
			rule.ResourceNames = []string{action.ResourceName}
		}
	}
	users, groups, missing, err := l.whoCan(namespace, rule)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &authorizationv1.ResourceAccessReviewResponse{
		Namespace: namespace, UsersSlice: users, GroupsSlice: groups, EvaluationError: text(missing),
	}, nil
}

func text(errs []error) string {
	if len(errs) == 0 {
		return ""
	}
	return errors.Join(errs...).Error()
}

// newSubjectRules serves subjectrulesreviews, which list the permissions of a subject in the
// request's namespace.
func newSubjectRules(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.SubjectRulesReview{} }, "subjectrulesreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.SubjectRulesReview)
			if review.Spec.User == "" && len(review.Spec.Groups) == 0 {
				return nil, apierrors.NewBadRequest("spec.user or spec.groups must name a subject; use a selfsubjectrulesreview for your own permissions")
			}
			status, err := l.rulesReview(ctx, deps.Authorizer, namespace, review.Spec.User, review.Spec.Groups, review.Spec.Scopes)
			review.Status = status
			return review, err
		}}, nil
}

// newSelfRules serves selfsubjectrulesreviews, which list the permissions of the request's user in
// the request's namespace.
func newSelfRules(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} }, "selfsubjectrulesreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			review := object.(*authorizationv1.SelfSubjectRulesReview)
			status, err := l.rulesReview(ctx, deps.Authorizer, namespace, "", nil, review.Spec.Scopes)
			review.Status = status
			return review, err
		}}, nil
}

// rulesReview lists the rules that apply to a user. RBAC rules cannot express scopes. Therefore, if
// the user has scopes, rulesReview lists the actions that both the user's rules and the scopes
// allow. The authorizer evaluates the scopes.
func (l *locator) rulesReview(ctx context.Context, decider authorizer.Authorizer, namespace, name string,
	groups, scopes []string) (authorizationv1.SubjectRulesReviewStatus, error) {
	u, err := subject(ctx, name, groups, scopes)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, err
	}
	rules, missing, err := l.rulesFor(namespace, u)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, apierrors.NewInternalError(err)
	}
	if len(u.GetExtra()[scope.ExtraKey]) > 0 {
		if rules, err = within(ctx, decider, u, namespace, rules); err != nil {
			return authorizationv1.SubjectRulesReviewStatus{}, err
		}
	}
	return authorizationv1.SubjectRulesReviewStatus{Rules: fromRules(rules), EvaluationError: text(missing)}, nil
}

// within returns the actions that both the rules and the user's scopes allow.
func within(ctx context.Context, decider authorizer.Authorizer, u user.Info, namespace string,
	rules []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	var allowed []rbacv1.PolicyRule
	for _, rule := range rules {
		if err := ctx.Err(); err != nil {
			return nil, err // the request has ended
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				remaining := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames}
				for _, verb := range rule.Verbs {
					action := authorizationv1.Action{Verb: verb, Group: group, Resource: resource}
					if len(rule.ResourceNames) > 0 {
						action.ResourceName = rule.ResourceNames[0]
					}
					decision, _, err := decider.Authorize(ctx, attributes(u, namespace, action))
					if err == nil && decision == authorizer.DecisionAllow {
						remaining.Verbs = append(remaining.Verbs, verb)
					}
				}
				if len(remaining.Verbs) > 0 {
					allowed = append(allowed, remaining)
				}
			}
		}
	}
	return allowed, nil
}
