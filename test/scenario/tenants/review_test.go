package tenants

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// reviewResponse sends a review and returns the response. body is YAML without apiVersion and kind.
func reviewResponse(t *testing.T, user *kit.User, kind, path, body string) string {
	t.Helper()
	return user.May("POST", path, fmt.Sprintf("{apiVersion: %s, kind: %s, %s}", version(path), kind, body))
}

// version returns the group and version in a resource's URL path, such as route.openshift.io/v1.
func version(path string) string { return strings.Join(strings.Split(path, "/")[2:4], "/") }

func TestReviewsListRights(t *testing.T) {
	c := tenants(t)
	gus := c.User("gus")
	gus.RequestProject(c, "gus-shop")
	const api = "/apis/authorization.openshift.io/v1/"
	local := api + "namespaces/gus-shop/"

	// These reviews check whether a user is allowed to perform an action.
	has(t, reviewResponse(t, gus, "LocalSubjectAccessReview", local+"localsubjectaccessreviews", "verb: get, resource: pods"), `"allowed":true`, `"namespace":"gus-shop"`)
	has(t, reviewResponse(t, gus, "LocalSubjectAccessReview", local+"localsubjectaccessreviews", "verb: get, resource: pods, user: hal"), `"allowed":false`)
	has(t, reviewResponse(t, gus, "LocalSubjectAccessReview", local+"localsubjectaccessreviews", "verb: get, resource: pods, user: gus, groups: [], scopes: ['user:info']"), `"allowed":false`)
	if response, err := gus.Try("POST", local+"localsubjectaccessreviews",
		"{apiVersion: authorization.openshift.io/v1, kind: LocalSubjectAccessReview, verb: get, resource: pods, namespace: default}"); err == nil {
		t.Errorf("a local review of another project: %s", response)
	}
	admin := c.Administrator()
	has(t, reviewResponse(t, admin, "SubjectAccessReview", api+"subjectaccessreviews", "verb: list, resource: nodes, user: gus"), `"allowed":false`)
	has(t, reviewResponse(t, admin, "SubjectAccessReview", api+"subjectaccessreviews", "verb: list, resource: pods, user: gus, namespace: gus-shop"), `"allowed":true`)
	gus.MayNot("POST", api+"subjectaccessreviews", "{apiVersion: authorization.openshift.io/v1, kind: SubjectAccessReview, verb: list, resource: nodes, user: hal}", "may only review their own permissions")

	// These reviews return the users who are allowed to perform an action.
	has(t, reviewResponse(t, gus, "LocalResourceAccessReview", local+"localresourceaccessreviews", "verb: delete, resource: pods"), `"gus"`, `"system:masters"`)
	has(t, reviewResponse(t, admin, "ResourceAccessReview", api+"resourceaccessreviews", "verb: list, resource: nodes"), `"system:cluster-readers"`)
	gus.MayNot("POST", api+"resourceaccessreviews", "{apiVersion: authorization.openshift.io/v1, kind: ResourceAccessReview, verb: list, resource: nodes}", "cannot create resource")

	// These reviews return the actions that a user is allowed to perform.
	has(t, reviewResponse(t, gus, "SelfSubjectRulesReview", local+"selfsubjectrulesreviews", "spec: {}"), `"imagestreams"`, `"rolebindings"`)
	c.WaitFor("the rules of the project's builder", func(context.Context) error {
		response := reviewResponse(t, gus, "SubjectRulesReview", local+"subjectrulesreviews", "spec: {user: 'system:serviceaccount:gus-shop:builder'}")
		if !strings.Contains(response, `"imagestreams/layers"`) {
			return fmt.Errorf("they are %s", response)
		}
		return nil
	})
	has(t, gus.May("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {resourceAttributes: {verb: create, resource: pods, namespace: gus-shop}}}"), `"allowed":true`)

	// These reviews return the constraint that would accept a pod.
	const psp = "/apis/security.openshift.io/v1/namespaces/gus-shop/"
	pod := func(security string) string {
		return "template: {spec: {containers: [{name: main, image: none, securityContext: {" + security + "}}]}}"
	}
	has(t, reviewResponse(t, gus, "PodSecurityPolicySelfSubjectReview", psp+"podsecuritypolicyselfsubjectreviews", "spec: {"+pod("")+"}"), `"name":"restricted"`)
	has(t, reviewResponse(t, gus, "PodSecurityPolicySelfSubjectReview", psp+"podsecuritypolicyselfsubjectreviews", "spec: {"+pod("privileged: true")+"}"), `"reason":"`)
	has(t, reviewResponse(t, gus, "PodSecurityPolicySubjectReview", psp+"podsecuritypolicysubjectreviews", "spec: {user: root, groups: ['system:masters'], "+pod("privileged: true")+"}"), `"name":"privileged"`)
	has(t, reviewResponse(t, gus, "PodSecurityPolicyReview", psp+"podsecuritypolicyreviews", "spec: {serviceAccountNames: [builder], "+pod("")+"}"), `"allowedServiceAccounts":[]`)
}

func TestRestrictionsLimitSubjectsOfBindings(t *testing.T) {
	c := tenants(t)
	ida := c.User("ida")
	ida.RequestProject(c, "ida-shop")
	c.OC("adm", "groups", "new", "staff", "jon")
	t.Cleanup(func() { c.OC("delete", "group", "staff") })
	c.In("ida-shop").Apply(`
apiVersion: authorization.openshift.io/v1
kind: RoleBindingRestriction
metadata: {name: users, namespace: ida-shop}
spec: {userrestriction: {users: [kim], groups: [staff]}}
---
apiVersion: authorization.openshift.io/v1
kind: RoleBindingRestriction
metadata: {name: accounts, namespace: ida-shop}
spec: {serviceaccountrestriction: {namespaces: [ida-shop]}}
`)
	bind := func(name, subject string) string {
		return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [%s]}", name, subject)
	}
	user := func(name string) string {
		return "{kind: User, apiGroup: rbac.authorization.k8s.io, name: " + name + "}"
	}
	bindings := kit.GroupPath("rbac.authorization.k8s.io", "ida-shop", "rolebindings")
	c.WaitFor("the restrictions", func(context.Context) error {
		if _, err := ida.Try("POST", bindings+"?", bind("try", user("lea"))); err == nil {
			return fmt.Errorf("a user who is not named can be bound")
		}
		return nil
	})
	ida.May("POST", bindings, bind("kim", user("kim")))
	ida.May("POST", bindings, bind("jon", user("jon")))
	ida.May("POST", bindings, bind("own", "{kind: ServiceAccount, name: default, namespace: ida-shop}"))
	ida.MayNot("POST", bindings, bind("lea", user("lea")), `rolebindings to User "lea" are not allowed in project "ida-shop"`)
	ida.MayNot("POST", bindings, bind("other", "{kind: ServiceAccount, name: default, namespace: default}"), `rolebindings to ServiceAccount "default" are not allowed`)
	ida.MayNot("POST", bindings, bind("all", "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:authenticated'}"), `rolebindings to Group "system:authenticated" are not allowed`)
	// The restrictions must also apply to requests with OpenShift's names.
	ida.MayNot("POST", kit.GroupPath("authorization.openshift.io", "ida-shop", "rolebindings"),
		"{apiVersion: authorization.openshift.io/v1, kind: RoleBinding, metadata: {name: lea}, roleRef: {name: view}, subjects: [{kind: User, name: lea}]}", "are not allowed in project")
	has(t, ida.May("GET", kit.GroupPath("authorization.openshift.io", "ida-shop", "rolebindingrestrictions"), ""), `"name":"users"`)
	ida.MayNot("DELETE", kit.GroupPath("authorization.openshift.io", "ida-shop", "rolebindingrestrictions/users"), "", "cannot delete resource")
}
