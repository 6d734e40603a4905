package apiserver

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	genericserver "k8s.io/apiserver/pkg/server"
)

func TestReasonsDoNotNameAuthorizers(t *testing.T) {
	none := func(reason string) authorizer.Authorizer {
		return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionNoOpinion, reason, nil
		})
	}
	upstream, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "node", Authorizer: none("")},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: none("RBAC: role \"a: b\" not found")})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{hooks: Hooks{Authorizers: []union.NamedAuthorizer{{AuthorizerName: "ours", Authorizer: none("")}}}}
	config := &genericserver.Config{}
	config.Authorization.Authorizer = upstream
	if err := s.Secure(config); err != nil {
		t.Fatal(err)
	}
	const want = `RBAC: role "a: b" not found`
	if decision, got, _ := config.Authorization.Authorizer.Authorize(t.Context(), authorizer.AttributesRecord{}); got != want || decision != authorizer.DecisionNoOpinion {
		t.Errorf("decision %v, reason %q", decision, got)
	}
}
