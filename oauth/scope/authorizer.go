package scope

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbac "k8s.io/component-helpers/auth/rbac/validation"
)

// Authorizer denies requests that the scopes of their token do not allow. For all other requests,
// it returns no opinion, and the next authorizers check the user's permissions. It returns no
// opinion for a user without scopes.
type Authorizer struct {
	// ClusterRole returns a cluster role's rules. It fails if the role does not exist.
	ClusterRole func(ctx context.Context, name string) ([]rbacv1.PolicyRule, error)
}

var _ authorizer.Authorizer = (*Authorizer)(nil)

// Authorize denies requests that none of the user's scopes allow.
func (a *Authorizer) Authorize(ctx context.Context,
	request authorizer.Attributes) (authorizer.Decision, string, error) {
	if request.GetUser() == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	scopes, limited := request.GetUser().GetExtra()[ExtraKey]
	if !limited {
		return authorizer.DecisionNoOpinion, "", nil
	}
	rules := []rbacv1.PolicyRule{ruleOf(request)}
	if covers(discovery(), rules) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	var problems []string
	for _, text := range scopes {
		allowed, err := a.allows(ctx, text, request, rules)
		if err != nil {
			problems = append(problems, err.Error())
		}
		if allowed {
			return authorizer.DecisionNoOpinion, "", nil
		}
	}
	reason := fmt.Sprintf("scopes [%s] prevent this action", strings.Join(scopes, " "))
	if len(problems) > 0 {
		reason += ": " + strings.Join(problems, "; ")
	}
	return authorizer.DecisionDeny, reason, nil
}

// ConditionsAwareAuthorize returns the result of Authorize, which never has conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context,
	request authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, request))
}

// EvaluateConditions denies the request. It is never called, because no decision of an Authorizer
// has conditions.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

func (a *Authorizer) allows(ctx context.Context, text string, request authorizer.Attributes,
	required []rbacv1.PolicyRule) (bool, error) {
	if rules, ok := userRules(text); ok {
		return covers(rules, required), nil
	}
	role, err := ParseRole(text)
	if err != nil {
		return false, err
	}
	if role.Namespace != AllNamespaces && role.Namespace != request.GetNamespace() {
		return false, nil
	}
	if !role.Escalating && escalates(request) {
		return false, nil
	}
	rules, err := a.ClusterRole(ctx, role.Name)
	if err != nil {
		return false, err
	}
	return covers(rules, required), nil
}

func covers(rules, required []rbacv1.PolicyRule) bool {
	all, _ := rbac.Covers(rules, required)
	return all
}

// ruleOf returns a rule that allows exactly one request.
func ruleOf(request authorizer.Attributes) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{request.GetVerb()}}
	if !request.IsResourceRequest() {
		rule.NonResourceURLs = []string{request.GetPath()}
		return rule
	}
	resource := request.GetResource()
	if sub := request.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	rule.APIGroups, rule.Resources = []string{request.GetAPIGroup()}, []string{resource}
	if name := request.GetName(); name != "" {
		rule.ResourceNames = []string{name}
	}
	return rule
}
