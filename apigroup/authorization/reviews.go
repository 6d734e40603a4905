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

// review is a resource that answers a question: it can be created, and is not kept.
type review struct {
	kind       func() runtime.Object
	single     string
	namespaced bool
	answer     func(ctx context.Context, namespace string, asked runtime.Object) (runtime.Object, error)
}

var _ rest.Creater = review{}

// New makes an empty question.
func (r review) New() runtime.Object { return r.kind() }

// Destroy has nothing to give back.
func (review) Destroy() {}

// NamespaceScoped tells whether the question is asked in a namespace.
func (r review) NamespaceScoped() bool { return r.namespaced }

// GetSingularName is the name of one.
func (r review) GetSingularName() string { return r.single }

// Create answers a question.
func (r review) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return r.answer(ctx, request.NamespaceValue(ctx), object)
}

// subject is whom a question is about: whoever asks when it names nobody. Scopes limit the subject as they limit a token.
func subject(ctx context.Context, name string, groups, scopes []string) (user.Info, error) {
	who := &user.DefaultInfo{Name: name, Groups: groups}
	if name == "" && len(groups) == 0 {
		self, ok := request.UserFrom(ctx)
		if !ok {
			return nil, errors.New("the request has no user")
		}
		who = &user.DefaultInfo{Name: self.GetName(), UID: self.GetUID(), Groups: self.GetGroups(), Extra: self.GetExtra()}
		if scopes == nil { // those of the asking token
			return who, nil
		}
	}
	for _, text := range scopes {
		if err := scope.Validate(text); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	who.Extra = map[string][]string{}
	if len(scopes) > 0 {
		who.Extra[scope.ExtraKey] = scopes
	}
	return who, nil
}

// newSubjectAccess makes subjectaccessreviews: may someone do something, in a namespace or in the cluster?
func newSubjectAccess(deps apiserver.Deps) (rest.Storage, error) {
	return review{func() runtime.Object { return &authorizationv1.SubjectAccessReview{} }, "subjectaccessreview", false,
		func(ctx context.Context, _ string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.SubjectAccessReview)
			if err := mayAsk(ctx, deps.Authorizer, "subjectaccessreviews", "", asked.User, asked.GroupsSlice); err != nil {
				return nil, err
			}
			return access(ctx, deps.Authorizer, asked.Action.Namespace, asked.Action, asked.User, asked.GroupsSlice, asked.Scopes)
		}}, nil
}

// newLocalSubjectAccess makes localsubjectaccessreviews: may someone do something in this namespace?
func newLocalSubjectAccess(deps apiserver.Deps) (rest.Storage, error) {
	return review{func() runtime.Object { return &authorizationv1.LocalSubjectAccessReview{} }, "localsubjectaccessreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.LocalSubjectAccessReview)
			if err := sameNamespace(namespace, asked.Action); err != nil {
				return nil, err
			}
			if err := mayAsk(ctx, deps.Authorizer, "localsubjectaccessreviews", namespace, asked.User, asked.GroupsSlice); err != nil {
				return nil, err
			}
			return access(ctx, deps.Authorizer, namespace, asked.Action, asked.User, asked.GroupsSlice, asked.Scopes)
		}}, nil
}

// mayAsk refuses a question about someone else to a user who may ask only about himself (see personal), and to a token that may ask only
// because of the scope user:check-access, which is for questions about oneself too.
func mayAsk(ctx context.Context, decider authorizer.Authorizer, resource, namespace, name string, groups []string) error {
	self, ok := request.UserFrom(ctx)
	if !ok || name == "" && len(groups) == 0 {
		return nil
	}
	who := self
	if scopes := self.GetExtra()[scope.ExtraKey]; slices.Contains(scopes, scope.CheckAccess) {
		others := slices.DeleteFunc(slices.Clone(scopes), func(text string) bool { return text == scope.CheckAccess })
		who = &user.DefaultInfo{
			Name: self.GetName(), UID: self.GetUID(), Groups: self.GetGroups(), Extra: map[string][]string{scope.ExtraKey: others},
		}
	}
	action := authorizationv1.Action{Verb: "create", Group: authorizationv1.GroupName, Resource: resource}
	decision, _, err := decider.Authorize(context.WithValue(ctx, othersKey{}, true), attributes(who, namespace, action))
	if err == nil && decision == authorizer.DecisionAllow {
		return nil
	}
	return apierrors.NewForbidden(authorizationv1.Resource(resource), "",
		fmt.Errorf("user %q may ask about himself only: leave user and groups empty", self.GetName()))
}

// sameNamespace refuses a local question about another namespace, which would go around the rights of the one that is asked in.
func sameNamespace(namespace string, action authorizationv1.Action) error {
	if action.Namespace != "" && action.Namespace != namespace {
		return apierrors.NewBadRequest("namespace: must be empty or the namespace of the request, " + namespace)
	}
	return nil
}

func access(ctx context.Context, decider authorizer.Authorizer, namespace string, action authorizationv1.Action, name string, groups, scopes []string) (runtime.Object, error) {
	if action.Verb == "" || action.Resource == "" && !action.IsNonResourceURL {
		return nil, apierrors.NewBadRequest("verb and resource must be named")
	}
	who, err := subject(ctx, name, groups, scopes)
	if err != nil {
		return nil, err
	}
	decision, reason, err := decider.Authorize(ctx, attributes(who, namespace, action))
	answer := &authorizationv1.SubjectAccessReviewResponse{Namespace: namespace, Allowed: decision == authorizer.DecisionAllow, Reason: reason}
	if err != nil {
		answer.EvaluationError = err.Error()
	}
	return answer, nil
}

func attributes(who user.Info, namespace string, action authorizationv1.Action) authorizer.Attributes {
	resource, subresource, _ := strings.Cut(action.Resource, "/")
	return authorizer.AttributesRecord{
		User: who, Verb: action.Verb, Namespace: namespace, APIGroup: action.Group, APIVersion: action.Version, Resource: resource,
		Subresource: subresource, Name: action.ResourceName, Path: action.Path, ResourceRequest: !action.IsNonResourceURL,
	}
}

// newResourceAccess makes resourceaccessreviews: who may do something, in a namespace or in the cluster?
func newResourceAccess(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.ResourceAccessReview{} }, "resourceaccessreview", false,
		func(_ context.Context, _ string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.ResourceAccessReview)
			return l.review(asked.Action.Namespace, asked.Action)
		}}, nil
}

// newLocalResourceAccess makes localresourceaccessreviews: who may do something in this namespace?
func newLocalResourceAccess(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.LocalResourceAccessReview{} }, "localresourceaccessreview", true,
		func(_ context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.LocalResourceAccessReview)
			if err := sameNamespace(namespace, asked.Action); err != nil {
				return nil, err
			}
			return l.review(namespace, asked.Action)
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

// newSubjectRules makes subjectrulesreviews: what may someone do in this namespace?
func newSubjectRules(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.SubjectRulesReview{} }, "subjectrulesreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.SubjectRulesReview)
			if asked.Spec.User == "" && len(asked.Spec.Groups) == 0 {
				return nil, apierrors.NewBadRequest("spec.user or spec.groups must name someone; ask a selfsubjectrulesreview about yourself")
			}
			status, err := l.rulesReview(ctx, deps.Authorizer, namespace, asked.Spec.User, asked.Spec.Groups, asked.Spec.Scopes)
			asked.Status = status
			return asked, err
		}}, nil
}

// newSelfRules makes selfsubjectrulesreviews: what may whoever asks do in this namespace?
func newSelfRules(deps apiserver.Deps) (rest.Storage, error) {
	l := newLocator(deps.Informers)
	return review{func() runtime.Object { return &authorizationv1.SelfSubjectRulesReview{} }, "selfsubjectrulesreview", true,
		func(ctx context.Context, namespace string, object runtime.Object) (runtime.Object, error) {
			asked := object.(*authorizationv1.SelfSubjectRulesReview)
			status, err := l.rulesReview(ctx, deps.Authorizer, namespace, "", nil, asked.Spec.Scopes)
			asked.Status = status
			return asked, err
		}}, nil
}

// rulesReview lists the rules of a user. Scopes are no rules of RBAC: of the user's rules those remain of which something is left when each
// of their actions is asked with the scopes.
func (l *locator) rulesReview(ctx context.Context, decider authorizer.Authorizer, namespace, name string, groups, scopes []string) (authorizationv1.SubjectRulesReviewStatus, error) {
	who, err := subject(ctx, name, groups, scopes)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, err
	}
	rules, missing, err := l.rulesFor(namespace, who)
	if err != nil {
		return authorizationv1.SubjectRulesReviewStatus{}, apierrors.NewInternalError(err)
	}
	if len(who.GetExtra()[scope.ExtraKey]) > 0 {
		rules = within(ctx, decider, who, namespace, rules)
	}
	return authorizationv1.SubjectRulesReviewStatus{Rules: fromRules(rules), EvaluationError: text(missing)}, nil
}

// within are those single actions of rules that the scopes of a user leave.
func within(ctx context.Context, decider authorizer.Authorizer, who user.Info, namespace string, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var left []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				kept := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames}
				for _, verb := range rule.Verbs {
					action := authorizationv1.Action{Verb: verb, Group: group, Resource: resource}
					if len(rule.ResourceNames) > 0 {
						action.ResourceName = rule.ResourceNames[0]
					}
					if decision, _, err := decider.Authorize(ctx, attributes(who, namespace, action)); err == nil && decision == authorizer.DecisionAllow {
						kept.Verbs = append(kept.Verbs, verb)
					}
				}
				if len(kept.Verbs) > 0 {
					left = append(left, kept)
				}
			}
		}
	}
	return left
}
