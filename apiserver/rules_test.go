package apiserver

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
)

// roles is a rule resolver that returns the same rules for every user.
type roles struct{}

func (roles) RulesFor(context.Context, user.Info, string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return []authorizer.ResourceRuleInfo{
			&authorizer.DefaultResourceRuleInfo{Verbs: []string{"get", "delete"}, APIGroups: []string{""}, Resources: []string{"pods", "secrets"}},
			&authorizer.DefaultResourceRuleInfo{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods/log"}, ResourceNames: []string{"a"}},
		}, []authorizer.NonResourceRuleInfo{
			&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: []string{"/version", "/metrics"}},
		}, false, nil
}

func TestRulesOfUserAreLimitedByToken(t *testing.T) {
	scopes := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if len(a.GetUser().GetExtra()) == 0 || a.GetVerb() == "get" && a.GetResource() == "pods" && a.GetNamespace() == "shop" || a.GetPath() == "/version" {
			return authorizer.DecisionNoOpinion, "", nil
		}
		return authorizer.DecisionDeny, "", nil
	})
	s := &Server{hooks: Hooks{Authorizers: []union.NamedAuthorizer{{AuthorizerName: "scopes", Authorizer: scopes}}}}
	config := &genericserver.Config{RuleResolver: roles{}}
	config.Authorization.Authorizer = scopes
	if err := s.Secure(config); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		extra map[string][]string
		want  string
	}{
		"without scopes": {nil, "[get delete] pods [], [get delete] secrets [], [get] pods/log [a], [get] /version, [get] /metrics, incomplete: false"},
		"with scopes":    {map[string][]string{"scopes": {"x"}}, "[get] pods [], [get] pods/log [a], [get] /version, incomplete: true"},
	} {
		t.Run(name, func(t *testing.T) {
			resources, paths, incomplete, err := config.RuleResolver.RulesFor(t.Context(), &user.DefaultInfo{Name: "alice", Extra: tt.extra}, "shop")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, rule := range resources {
				got += fmt.Sprintf("%v %s %v, ", rule.GetVerbs(), rule.GetResources()[0], rule.GetResourceNames())
			}
			for _, rule := range paths {
				got += fmt.Sprintf("%v %s, ", rule.GetVerbs(), rule.GetNonResourceURLs()[0])
			}
			if got += fmt.Sprint("incomplete: ", incomplete); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
