package attack

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// token returns a user that authenticates with a token that has the given scopes.
func (s *stage) token(name string, scopes ...string) *kit.User {
	return s.Impersonate(rest.ImpersonationConfig{
		UserName: name, Groups: []string{"system:authenticated", "system:authenticated:oauth"},
		Extra: map[string][]string{"scopes.authorization.openshift.io": scopes},
	})
}

// TestTokenGetsNoConstraintsBeyondItsScopes uses stolen tokens that belong to Alice, who is allowed
// to use several constraints.
func TestTokenGetsNoConstraintsBeyondItsScopes(t *testing.T) {
	s := tenants(t)
	name := s.shop + "-privileged"
	s.Apply(`
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata: {name: ` + name + `}
allowPrivilegedContainer: true
allowHostDirVolumePlugin: true
runAsUser: {type: RunAsAny}
seLinuxContext: {type: RunAsAny}
fsGroup: {type: RunAsAny}
supplementalGroups: {type: RunAsAny}
volumes: ["*"]
users: [alice]
groups: []
`)
	t.Cleanup(func() { s.OC("delete", "scc", name) })
	const privileged = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"root"},
		"spec":{"containers":[{"name":"a","image":"a","securityContext":{"privileged":true}}]}}`
	pods := kit.CorePath(s.shop, "pods") + "?"
	s.WaitFor("the constraint", func(context.Context) error {
		_, err := s.alice.Try("POST", pods, privileged)
		return err
	})
	s.token("alice", "user:full").May("POST", pods, privileged)
	limited := s.token("alice", "role:edit:"+s.shop)
	limited.MayNot("POST", pods, privileged, "privileged containers are not allowed")
	limited.May("POST", pods, strings.Replace(privileged, `"privileged":true`, "", 1))
	s.token("alice", "user:info").MayNot("POST", pods, privileged, "scopes [user:info] prevent this action")
	review := `{"apiVersion":"security.openshift.io/v1","kind":"PodSecurityPolicySelfSubjectReview","spec":{"template":` + privileged + `}}`
	reviews := kit.GroupPath("security.openshift.io", s.shop, "podsecuritypolicyselfsubjectreviews")
	if got := s.alice.May("POST", reviews, review); !strings.Contains(got, name) {
		t.Errorf("alice's review is\n%s", got)
	}
	if got, _ := limited.Try("POST", reviews, review); strings.Contains(got, name) {
		t.Errorf("the review of a limited token is\n%s", got)
	}
}

// TestAdmissionAppliesScopes uses a cluster administrator's stolen token whose scopes limit it to
// editing one project. Admission plugins must also apply this limit.
func TestAdmissionAppliesScopes(t *testing.T) {
	s := tenants(t)
	s.OC("adm", "policy", "add-cluster-role-to-user", "cluster-admin", s.shop+"-root")
	t.Cleanup(func() { s.OC("adm", "policy", "remove-cluster-role-from-user", "cluster-admin", s.shop+"-root") })
	s.stream(s.alice, s.shop, "app")
	root, limited := s.User(s.shop+"-root"), s.token(s.shop+"-root", "role:edit:"+s.evil)
	endpoints := `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"host"},"subsets":[{"addresses":[{"ip":"` + s.Address.String() + `"}],"ports":[{"port":8443}]}]}`
	s.WaitFor("the role", func(context.Context) error {
		_, err := root.Try("POST", kit.CorePath(s.evil, "endpoints")+"?", endpoints)
		return err
	})
	limited.MayNot("POST", kit.CorePath(s.evil, "endpoints")+"?", endpoints, "")
	const customBuild = `{"apiVersion":"build.openshift.io/v1","kind":"BuildConfig","metadata":{"name":"custom"},
		"spec":{"source":{"type":"None"},"strategy":{"customStrategy":{"from":{"kind":"DockerImage","name":"a"}}}}}`
	root.May("POST", kit.GroupPath("build.openshift.io", s.evil, "buildconfigs")+"?", customBuild)
	limited.MayNot("POST", kit.GroupPath("build.openshift.io", s.evil, "buildconfigs")+"?", customBuild, "build strategy Custom is not allowed")
}
