package kube

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestNodeRequestsWaitForGraph(t *testing.T) {
	node := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}
	secret := authorizer.AttributesRecord{User: node, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "key", ResourceRequest: true}
	foreign, unnamed, pods, token, status := secret, secret, secret, secret, secret
	foreign.User = &user.DefaultInfo{Name: "joe"}
	unnamed.Name = ""
	pods.Resource = "pods"
	status.Verb, status.Resource, status.Subresource = "patch", "pods", "status"
	token.Verb, token.Resource, token.Subresource = "create", "serviceaccounts", "token"
	for name, tt := range map[string]struct {
		request authorizer.AttributesRecord
		want    authorizer.Decision
	}{
		"secret of a pod": {secret, authorizer.DecisionAllow}, "token of an account": {token, authorizer.DecisionAllow},
		"another user": {foreign, authorizer.DecisionNoOpinion}, "all secrets": {unnamed, authorizer.DecisionNoOpinion}, "pod": {pods, authorizer.DecisionAllow},
		"status of a pod": {status, authorizer.DecisionNoOpinion},
	} {
		calls := 0
		graph := lateGraph{authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			if calls++; calls > 2 {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "no relationship", nil
		})}
		if got, _, err := graph.authorize(t.Context(), tt.request); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
	}
}

func TestNodeAuthorizerStillDenies(t *testing.T) {
	node := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}
	never := lateGraph{authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "no relationship", nil
	})}
	request := authorizer.AttributesRecord{User: node, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "foreign", ResourceRequest: true}
	if got, _, err := never.authorize(t.Context(), request); got != authorizer.DecisionNoOpinion || err != nil {
		t.Errorf("a secret of another node: %v, %v", got, err)
	}
}
