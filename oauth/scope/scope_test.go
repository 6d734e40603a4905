package scope

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oauthv1 "github.com/openshift/api/oauth/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestRoleScopesAreParsed(t *testing.T) {
	tests := []struct {
		text string
		want Role
		ok   bool
	}{
		{"role:edit:prod", Role{Name: "edit", Namespace: "prod"}, true},
		{"role:edit:*", Role{Name: "edit", Namespace: "*"}, true},
		{"role:edit:prod:!", Role{Name: "edit", Namespace: "prod", Escalating: true}, true},
		{"role:system:image-puller:prod", Role{Name: "system:image-puller", Namespace: "prod"}, true},
		{"role:edit", Role{}, false},
		{"role::prod", Role{}, false},
		{"role:edit:", Role{}, false},
		{"role:edit:!", Role{}, false},
		{"role:a/b:prod", Role{}, false},
		{"role:edit:Prod", Role{}, false},
		{"user:full", Role{}, false},
	}
	for _, tt := range tests {
		got, err := ParseRole(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.ok {
			t.Errorf("%s: error %v (-want +got):\n%s", tt.text, err, diff)
		}
		if tt.ok && got.String() != tt.text {
			t.Errorf("%s is written as %s", tt.text, got)
		}
	}
}

// roles returns the rules of the cluster roles that the tests use.
func roles(_ context.Context, name string) ([]rbacv1.PolicyRule, error) {
	switch name {
	case "edit":
		return []rbacv1.PolicyRule{{Verbs: []string{"get", "create"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "secrets"}}}, nil
	case "everything":
		return []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}, nil
	}
	return nil, fmt.Errorf("clusterrole %q not found", name)
}

// resource returns a request of the form `verb group/resource/subresource namespace/name`.
func resource(verb, group, kind, sub, namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Verb: verb, APIGroup: group, Resource: kind, Subresource: sub, Namespace: namespace, Name: name, ResourceRequest: true}
}

func url(verb, path string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Verb: verb, Path: path}
}

func TestScopesCoverRequests(t *testing.T) {
	pod := resource("get", "", "pods", "", "prod", "web")
	secret := resource("get", "", "secrets", "", "prod", "key")
	self := resource("get", "user.openshift.io", "users", "", "", "~")
	tests := []struct {
		name    string
		scopes  []string
		request authorizer.AttributesRecord
		covered bool
	}{
		{"user:full covers everything", []string{Full}, secret, true},
		{"user:full covers other paths", []string{Full}, url("post", "/logs"), true},
		{"user:info covers the user", []string{Info}, self, true},
		{"user:info covers no other user", []string{Info}, resource("get", "user.openshift.io", "users", "", "", "bob"), false},
		{"user:info changes nothing", []string{Info}, resource("update", "user.openshift.io", "users", "", "", "~"), false},
		{"user:info lists no users", []string{Info}, resource("list", "user.openshift.io", "users", "", "", ""), false},
		{"user:check-access covers own reviews", []string{CheckAccess}, resource("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", ""), true},
		{"user:check-access covers no review of others", []string{CheckAccess}, resource("create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""), false},
		{"user:list-projects lists", []string{ListProjects}, resource("list", "project.openshift.io", "projects", "", "", ""), true},
		{"user:list-projects reads none", []string{ListProjects}, resource("get", "project.openshift.io", "projects", "", "prod", "prod"), false},
		{"a role in its namespace", []string{"role:edit:prod"}, pod, true},
		{"a role in another namespace", []string{"role:edit:test"}, pod, false},
		{"a role everywhere", []string{"role:edit:*"}, pod, true},
		{"a subresource of the role", []string{"role:edit:prod"}, resource("get", "", "pods", "log", "prod", "web"), true},
		{"a subresource that the role lacks", []string{"role:edit:prod"}, resource("get", "", "pods", "exec", "prod", "web"), false},
		{"a verb that the role lacks", []string{"role:edit:prod"}, resource("delete", "", "pods", "", "prod", "web"), false},
		{"a secret", []string{"role:edit:prod"}, secret, false},
		{"a secret with !", []string{"role:edit:prod:!"}, secret, true},
		{"a secret through a rule for everything", []string{"role:everything:prod"}, secret, false},
		{"a binding through a rule for everything", []string{"role:everything:*"}, resource("create", "rbac.authorization.k8s.io", "rolebindings", "", "prod", ""), false},
		{"a token of a service account", []string{"role:everything:*"}, resource("create", "", "serviceaccounts", "token", "prod", "default"), false},
		{"impersonation", []string{"role:everything:*"}, resource("impersonate", "", "users", "", "", "bob"), false},
		{"constrained impersonation", []string{"role:everything:*"}, resource("impersonate:user-info", "", "users", "", "", "bob"), false},
		{"constrained impersonation for pods", []string{"role:everything:*"}, resource("impersonate-on:user-info:list", "", "pods", "", "prod", ""), false},
		{"one of several scopes suffices", []string{Info, "role:edit:prod"}, pod, true},
		{"discovery with any scope", []string{Info}, url("get", "/apis/user.openshift.io/v1"), true},
		{"metrics need a scope", []string{Info}, url("get", "/metrics"), false},
		{"no scope covers nothing", []string{}, pod, false},
		{"a missing role", []string{"role:missing:prod"}, pod, false},
		{"an invalid scope", []string{"root"}, pod, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.User = &user.DefaultInfo{Name: "alice", Extra: map[string][]string{ExtraKey: tt.scopes}}
			decision, reason, err := (&Authorizer{ClusterRole: roles}).Authorize(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if (decision == authorizer.DecisionNoOpinion) != tt.covered {
				t.Errorf("decision %v, reason %q", decision, reason)
			}
			if !tt.covered && !strings.Contains(reason, "prevent this action") {
				t.Errorf("reason %q", reason)
			}
		})
	}
}

func TestUsersWithoutScopesAreNotLimited(t *testing.T) {
	request := resource("get", "", "secrets", "", "prod", "key")
	request.User = &user.DefaultInfo{Name: "alice"}
	if decision, _, _ := (&Authorizer{ClusterRole: roles}).Authorize(t.Context(), request); decision != authorizer.DecisionNoOpinion {
		t.Errorf("decision %v", decision)
	}
}

func TestClientsAreRestrictedToScopes(t *testing.T) {
	account := []oauthv1.ScopeRestriction{
		{ExactValues: []string{Info, CheckAccess}},
		{ClusterRole: &oauthv1.ClusterRoleScopeRestriction{RoleNames: []string{"*"}, Namespaces: []string{"prod"}, AllowEscalation: true}},
	}
	tame := []oauthv1.ScopeRestriction{{ClusterRole: &oauthv1.ClusterRoleScopeRestriction{RoleNames: []string{"edit"}, Namespaces: []string{"*"}}}}
	tests := []struct {
		name         string
		restrictions []oauthv1.ScopeRestriction
		scopes       string
		ok           bool
	}{
		{"none", nil, "user:full role:edit:prod:!", true},
		{"an invalid scope", nil, "root", false},
		{"exact values", account, "user:info user:check-access", true},
		{"another value", account, "user:full", false},
		{"a role in the namespace", account, "role:admin:prod role:admin:prod:!", true},
		{"a role in another namespace", account, "role:admin:test", false},
		{"a role in all namespaces", account, "role:admin:*", false},
		{"the role", tame, "role:edit:test", true},
		{"another role", tame, "role:admin:test", false},
		{"escalation", tame, "role:edit:test:!", false},
	}
	for _, tt := range tests {
		if err := Permit(tt.restrictions, Split(tt.scopes)); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNamespacesOfScopes(t *testing.T) {
	tests := []struct {
		scopes string
		some   []string
		all    bool
	}{
		{"user:full", nil, true},
		{"user:list-projects", nil, true},
		{"user:list-scoped-projects role:edit:a role:view:b role:view:a", []string{"a", "b"}, false},
		{"role:edit:*", nil, true},
		{"user:info", nil, false},
	}
	for _, tt := range tests {
		some, all := Namespaces(Split(tt.scopes))
		if diff := cmp.Diff(tt.some, some); diff != "" || all != tt.all {
			t.Errorf("%s: all %v (-want +got):\n%s", tt.scopes, all, diff)
		}
	}
}

func TestGrantedScopesCoverRequestedOnes(t *testing.T) {
	if !Covers([]string{Info, CheckAccess}, []string{Info}) || Covers([]string{Info}, []string{Info, Full}) || !Covers([]string{Full}, []string{Info}) {
		t.Error("wrong result for granted scopes")
	}
}
