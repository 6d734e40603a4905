package apiserver

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
)

// limitedRules makes the rules in selfsubjectrulesreviews omit the permissions that a feature's
// authorizer denies. This is necessary because upstream resolves the rules from roles, regardless
// of the token's scopes.
type limitedRules struct {
	authorizer.RuleResolver
	limits []union.NamedAuthorizer
}

// RulesFor returns the rules that apply to a user in a namespace. If it removes a permission, it
// reports the rules as incomplete, because a narrower permission might still be allowed.
func (l limitedRules) RulesFor(ctx context.Context, u user.Info, namespace string) (
	[]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	resources, paths, incomplete, err := l.RuleResolver.RulesFor(ctx, u, namespace)
	var allowed []authorizer.ResourceRuleInfo
	for _, rule := range resources {
		for _, part := range parts(rule) {
			verbs := slices.DeleteFunc(slices.Clone(part.Verbs), func(verb string) bool { return l.denies(ctx, u, namespace, verb, part) })
			incomplete = incomplete || len(verbs) < len(part.Verbs)
			if part.Verbs = verbs; len(verbs) > 0 {
				allowed = append(allowed, part)
			}
		}
	}
	var open []authorizer.NonResourceRuleInfo
	for _, rule := range paths {
		for _, path := range rule.GetNonResourceURLs() {
			part := &authorizer.DefaultNonResourceRuleInfo{NonResourceURLs: []string{path}}
			for _, verb := range rule.GetVerbs() {
				if !l.deny(ctx, authorizer.AttributesRecord{User: u, Verb: verb, Path: path}) {
					part.Verbs = append(part.Verbs, verb)
				}
			}
			incomplete = incomplete || len(part.Verbs) < len(rule.GetVerbs())
			if len(part.Verbs) > 0 {
				open = append(open, part)
			}
		}
	}
	return allowed, open, incomplete, err
}

// parts splits a rule into rules for a single resource in a single group.
func parts(rule authorizer.ResourceRuleInfo) (rules []*authorizer.DefaultResourceRuleInfo) {
	for _, group := range rule.GetAPIGroups() {
		for _, resource := range rule.GetResources() {
			rules = append(rules, &authorizer.DefaultResourceRuleInfo{
				Verbs: rule.GetVerbs(), APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.GetResourceNames(),
			})
		}
	}
	return rules
}

// denies reports whether an authorizer denies a verb of the rule part for any of the rule's names.
func (l limitedRules) denies(ctx context.Context, u user.Info, namespace, verb string, part *authorizer.DefaultResourceRuleInfo) bool {
	resource, subresource, _ := strings.Cut(part.Resources[0], "/")
	names := part.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return l.deny(ctx, authorizer.AttributesRecord{
			User: u, Verb: verb, Namespace: namespace, APIGroup: part.APIGroups[0], APIVersion: "*", Resource: resource, Subresource: subresource,
			Name: name, ResourceRequest: true,
		})
	})
}

func (l limitedRules) deny(ctx context.Context, a authorizer.Attributes) bool {
	return slices.ContainsFunc(l.limits, func(limit union.NamedAuthorizer) bool {
		decision, _, _ := limit.Authorizer.Authorize(ctx, a)
		return decision == authorizer.DecisionDeny
	})
}
