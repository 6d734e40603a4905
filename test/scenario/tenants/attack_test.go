package tenants

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestUsersCannotEscalateRights(t *testing.T) {
	c := tenants(t)
	eve := c.User("eve")
	eve.RequestProject(c, "eve-shop")
	const rbac = "rbac.authorization.k8s.io"
	roles, bindings := kit.GroupPath(rbac, "eve-shop", "roles"), kit.GroupPath(rbac, "eve-shop", "rolebindings")
	role := func(name, rule string) string {
		return fmt.Sprintf("{apiVersion: %s/v1, kind: Role, metadata: {name: %s}, rules: [%s]}", rbac, name, rule)
	}
	bind := func(name, role string) string {
		return fmt.Sprintf("{apiVersion: %s/v1, kind: RoleBinding, metadata: {name: %s}, roleRef: {apiGroup: %[1]s, kind: ClusterRole, name: %[3]s}, subjects: [{apiGroup: %[1]s, kind: User, name: eve}]}", rbac, name, role)
	}
	const extra = "is attempting to grant RBAC permissions not currently held"

	// Eve tries to create a role in the project, and to change an existing role, through both API
	// groups.
	allRules := "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}"
	eve.MayNot("POST", roles, role("all", allRules), extra)
	eve.May("POST", roles, role("pods", "{apiGroups: [''], resources: [pods], verbs: [get]}"))
	eve.MayNot("PATCH", roles+"/pods", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, extra)
	eve.MayNot("POST", kit.GroupPath("authorization.openshift.io", "eve-shop", "roles"), "{apiVersion: authorization.openshift.io/v1, kind: Role, metadata: {name: all}, rules: ["+allRules+"]}", extra)
	eve.MayNot("POST", roles, role("constraint", "{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [privileged], verbs: [use]}"), extra)

	// Eve tries to create bindings.
	for _, name := range []string{"cluster-admin", "cluster-reader", "system:router"} {
		eve.MayNot("POST", bindings, bind("more", name), extra)
	}
	eve.MayNot("POST", kit.GroupPath("authorization.openshift.io", "eve-shop", "rolebindings"),
		"{apiVersion: authorization.openshift.io/v1, kind: RoleBinding, metadata: {name: more}, roleRef: {name: cluster-admin}, subjects: [{kind: User, name: eve}]}", extra)
	eve.MayNot("POST", "/apis/"+rbac+"/v1/clusterrolebindings", "{}", "cannot create resource")

	// Eve tries to change and create constraints, and to create a privileged pod.
	eve.MayNot("PATCH", "/apis/security.openshift.io/v1/securitycontextconstraints/privileged", `{"users":["eve"]}`, "cannot patch resource")
	eve.MayNot("POST", "/apis/security.openshift.io/v1/securitycontextconstraints", "{}", "cannot create resource")
	privileged := "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {openshift.io/scc: privileged}}, spec: {containers: [{name: main, image: none, securityContext: {privileged: true}}]}}"
	eve.MayNot("POST", kit.CorePath("eve-shop", "pods"), privileged, "unable to validate against any security context constraint")

	// Eve tries impersonation. An editor of a project can impersonate only that project's service
	// accounts.
	eve.May("POST", bindings, strings.Replace(bind("robots", "edit"), "{apiGroup: "+rbac+", kind: User, name: eve}", "{kind: ServiceAccount, name: default, namespace: eve-shop}", 1))
	token, _ := secretsOf(c.In("eve-shop"), "default")
	robot := rest.AnonymousClientConfig(c.Config)
	robot.BearerToken, robot.Dial = string(token.Data["token"]), c.Dial
	shop := "system:serviceaccount:eve-shop:"
	c.WaitFor("the role of the account", func(context.Context) error {
		_, err := kit.NewUser(t, robot, rest.ImpersonationConfig{UserName: shop + "deployer"}).Try("GET", kit.CorePath("eve-shop", "replicationcontrollers"), "")
		return err
	})
	for _, user := range []rest.ImpersonationConfig{
		{UserName: "system:admin"}, {UserName: "frank"}, {UserName: "system:serviceaccount:kube-system:clusterrole-aggregation-controller"},
		{UserName: shop + "deployer", Groups: []string{"system:masters"}}, {UserName: shop + "deployer", Extra: map[string][]string{"scopes.authorization.openshift.io": {"user:full"}}},
	} {
		kit.NewUser(t, robot, user).MayNot("GET", kit.CorePath("eve-shop", "replicationcontrollers"), "", "cannot impersonate resource")
	}

	// Eve tries to change templates, which belong to the administrator. She also tries to change
	// webhooks and policies, which receive all users' objects.
	eve.MayNot("PATCH", "/apis/template.openshift.io/v1/namespaces/openshift/templates/project-request", `{"objects":[]}`, "cannot patch resource")
	for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies"} {
		eve.MayNot("POST", "/apis/admissionregistration.k8s.io/v1/"+kind, "{}", "cannot create resource")
	}

	// Eve tries to change the project object itself, because its annotations control users, groups
	// and nodes.
	for _, annotation := range []string{"openshift.io/sa.scc.uid-range", "openshift.io/node-selector", "openshift.io/requester"} {
		body := `{"metadata":{"annotations":{"` + annotation + `":"0/1"}}}`
		if response, err := eve.Try("PATCH", "/apis/project.openshift.io/v1/projects/eve-shop", body); err == nil {
			t.Errorf("annotation %s is changed: %s", annotation, response)
		}
		eve.MayNot("PATCH", "/api/v1/namespaces/eve-shop", body, "cannot patch resource")
	}

	// Eve tries to access other users' tokens, groups and quotas.
	for _, path := range []string{
		"/apis/oauth.openshift.io/v1/oauthaccesstokens", "/apis/oauth.openshift.io/v1/oauthclients", "/apis/user.openshift.io/v1/users", "/apis/user.openshift.io/v1/groups",
		"/apis/user.openshift.io/v1/identities", "/apis/security.openshift.io/v1/rangeallocations", kit.CorePath("openshift-infra", "secrets"), kit.CorePath("default", "serviceaccounts"),
	} {
		eve.MayNot("GET", path, "", "cannot list resource")
	}
	eve.MayNot("POST", "/apis/user.openshift.io/v1/groups", "{apiVersion: user.openshift.io/v1, kind: Group, metadata: {name: mine}, users: [eve]}", "cannot create resource")
}

func TestAmbiguousNamesAreRejected(t *testing.T) {
	c := tenants(t)
	admin := c.Administrator()
	for _, name := range []string{
		"a/b", "..", ".", "a%2fb", "a:b", "~", strings.Repeat("a", 300), "A", "a_b",
		"adm\u0456n", // contains a Cyrillic letter
		"a b", "\u202eadmin", "a\x00b",
	} {
		quoted := fmt.Sprintf("%q", name)
		for title, path := range map[string]string{
			"ProjectRequest project.openshift.io/v1": requests,
			"Project project.openshift.io/v1":        "/apis/project.openshift.io/v1/projects",
			"Namespace v1":                           "/api/v1/namespaces",
		} {
			kind, version, _ := strings.Cut(title, " ")
			response, err := admin.Try("POST", path, `{"apiVersion":"`+version+`","kind":"`+kind+`","metadata":{"name":`+quoted+`}}`)
			if err == nil {
				t.Errorf("%s of the name %q is created: %s", kind, name, response)
			}
		}
		if strings.Trim(name, ".") == "" {
			continue // the request's path would contain a different name
		}
		if response, err := c.User("mallory").Try("GET", "/apis/project.openshift.io/v1/projects/"+url.PathEscape(name), ""); err == nil {
			t.Errorf("project %q: %s", name, response)
		}
	}
}

func TestOversizedInputIsRejected(t *testing.T) {
	c := tenants(t)
	oli := c.User("oli")
	oli.RequestProject(c, "oli-shop")
	path := kit.CorePath("oli-shop", "configmaps")
	for name, body := range map[string]string{
		"five megabytes":   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"a":"` + strings.Repeat("x", 5<<20) + `"}}`,
		"deep JSON":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep"},"data":` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000) + "}",
		"deep YAML":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deep}\ndata: " + strings.Repeat("[", 20000),
		"YAML that grows":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: laughs}\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
		"many annotations": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"notes","annotations":{"a":"` + strings.Repeat("x", 300<<10) + `"}}}`,
	} {
		if _, err := oli.Try("POST", path, body); err == nil {
			t.Errorf("%s: accepted", name)
		}
		for _, kind := range []string{"Template template.openshift.io templates", "DeploymentConfig apps.openshift.io deploymentconfigs"} {
			words := strings.Fields(kind)
			own := strings.NewReplacer(`"v1"`, `"`+words[1]+`/v1"`, "apiVersion: v1", "apiVersion: "+words[1]+"/v1", "ConfigMap", words[0]).Replace(body)
			if _, err := oli.Try("POST", kit.GroupPath(words[1], "oli-shop", words[2]), own); err == nil {
				t.Errorf("%s as %s: accepted", name, words[0])
			}
		}
	}
	oli.May("GET", path, "") // the API server must still respond
}
