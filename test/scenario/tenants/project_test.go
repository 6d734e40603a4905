package tenants

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestProjectsFollowConfiguredTemplate(t *testing.T) {
	c := tenants(t)
	bea := c.User("bea")
	bea.RequestProject(c, "bea-shop")
	has(t, c.OC("get", "namespace", "bea-shop", "-o", "yaml"), `tenants: "yes"`, "openshift.io/requester: bea", "openshift.io/display-name: A shop",
		"openshift.io/sa.scc.uid-range: ", "openshift.io/sa.scc.supplemental-groups: ", "openshift.io/sa.scc.mcs: s0:c")
	has(t, bea.May("GET", kit.CorePath("bea-shop", "resourcequotas/of-template"), ""), `"services":"3"`)
	bea.MayNot("DELETE", kit.CorePath("bea-shop", "resourcequotas/of-template"), "", "cannot delete resource")
	has(t, bea.May("GET", kit.GroupPath("networking.k8s.io", "bea-shop", "networkpolicies/allow-same-namespace"), ""), `"from":[{"podSelector":{}}]`)
	// The project must contain its service accounts' roles.
	c.WaitFor("the roles of the project's accounts", func(context.Context) error {
		got, err := c.TryOC("get", "rolebindings", "-n", "bea-shop", "-o", `jsonpath={range .items[*]}{.metadata.name}={.roleRef.name} {end}`)
		if err == nil && got != "admin=admin system:deployers=system:deployer system:image-builders=system:image-builder system:image-pullers=system:image-puller " {
			err = fmt.Errorf("they are %q", got)
		}
		return err
	})
	c.ServiceAccount("bea-shop", "deployer").May("GET", kit.CorePath("bea-shop", "replicationcontrollers"), "")
	c.ServiceAccount("bea-shop", "default").MayNot("GET", kit.CorePath("bea-shop", "replicationcontrollers"), "", "cannot list resource")

	// Only an administrator can change the template. If the template is broken, the error must
	// contain the template's name, and nothing may be created.
	bea.MayNot("PATCH", "/apis/template.openshift.io/v1/namespaces/openshift/templates/project-request", `{"objects":[]}`, "cannot patch resource")
	admin := c.Administrator()
	const path = "/apis/template.openshift.io/v1/namespaces/openshift/templates/project-request"
	full := admin.May("GET", path, "")
	admin.May("PATCH", path, `{"objects":[]}`)
	t.Cleanup(func() { admin.May("PATCH", path, `{"objects":`+field(t, full, "objects")+`}`) })
	response, err := c.User("cleo").Try("POST", requests, request("cleo-shop"))
	if err == nil {
		t.Fatalf("a project was created without a template: %s", response)
	}
	has(t, response, "the template creates 0 projects, must create one")
	if _, err := admin.Try("GET", "/api/v1/namespaces/cleo-shop", ""); !apierrors.IsNotFound(err) {
		t.Errorf("the rejected project: %v", err)
	}
}

func TestForbiddenProjectRequestShowsMessage(t *testing.T) {
	c := tenants(t)
	admin, dan := c.Administrator(), c.User("dan")
	dan.May("GET", requests, "")
	const self = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/self-provisioners"
	admin.May("PATCH", self, `{"subjects":null}`)
	restore := func() {
		admin.May("PATCH", self, `{"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated:oauth"}]}`)
	}
	t.Cleanup(restore)
	c.WaitFor("self-provisioning to end", func(context.Context) error {
		if _, err := dan.Try("GET", requests, ""); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	})
	dan.MayNot("GET", requests, "", "Ask help@example.com for a project.")
	dan.MayNot("POST", requests, request("dan-shop"), "cannot create resource")
	// An administrator can create projects for other users.
	admin.May("POST", "/apis/project.openshift.io/v1/projects", "{apiVersion: project.openshift.io/v1, kind: Project, metadata: {name: dan-shop}}")
	t.Cleanup(func() { c.OC("delete", "project", "dan-shop", "--wait=false") })
	dan.MayNot("GET", "/apis/project.openshift.io/v1/projects/dan-shop", "", "cannot get resource")
	c.OC("adm", "policy", "add-role-to-user", "admin", "dan", "-n", "dan-shop")
	c.WaitFor("the role", func(context.Context) error {
		_, err := dan.Try("GET", "/apis/project.openshift.io/v1/projects/dan-shop", "")
		return err
	})
}

func TestProjectRequestsAreLimited(t *testing.T) {
	c := tenants(t)
	c.OC("create", "user", "eva")
	c.OC("label", "user", "eva", "level=silver")
	t.Cleanup(func() { c.OC("delete", "user", "eva") })
	eva, fay := c.User("eva"), c.User("fay")
	for user, maximum := range map[*kit.User]int{eva: 2, fay: 1} {
		for i := range maximum {
			user.RequestProject(c, fmt.Sprintf("%s-%d", user.Name, i))
		}
		user.MayNot("POST", requests, request(user.Name+"-more"), fmt.Sprintf("user %s cannot create more than %d project(s)", user.Name, maximum))
	}
	// The limit must no longer count a deleted project.
	fay.May("DELETE", "/apis/project.openshift.io/v1/projects/fay-0", "")
	c.WaitFor("creation of another project", func(context.Context) error {
		_, err := fay.Try("POST", requests+"?", request("fay-1"))
		return err
	})

	// A service account must not be able to request projects until it is granted the role. After
	// that, its own limit applies.
	robot := c.ServiceAccount(c.Namespace, "default")
	robot.MayNot("POST", requests, request("robot-0"), "cannot create resource")
	c.OC("adm", "policy", "add-cluster-role-to-user", "self-provisioner", robot.Name)
	t.Cleanup(func() { c.OC("adm", "policy", "remove-cluster-role-from-user", "self-provisioner", robot.Name) })
	c.WaitFor("the role of the account", func(context.Context) error {
		response, err := robot.Try("GET", requests, "")
		if err != nil {
			return fmt.Errorf("%w: %s", err, response)
		}
		return nil
	})
	robot.RequestProject(c, "robot-0")
	robot.MayNot("POST", requests, request("robot-1"), "cannot create more than 1 project(s)")
}

func TestProjectNodeSelectorIsAddedToPods(t *testing.T) {
	c := tenants(t)
	admin := c.Administrator()
	for name, tt := range map[string]struct{ annotation, pod, want, refusal string }{
		"by-default": {pod: "", want: `"region":"primary"`},
		"own":        {annotation: "openshift.io/node-selector: env=test", pod: "{disk: fast}", want: `"disk":"fast","env":"test"`},
		"none":       {annotation: "openshift.io/node-selector: ''", pod: "{disk: fast}", want: `"nodeSelector":{"disk":"fast"}`},
		"conflict":   {annotation: "openshift.io/node-selector: env=test", pod: "{env: production}", refusal: "conflicts with its project node label selector"},
		"broken":     {annotation: "openshift.io/node-selector: 'a=b=c'", refusal: "openshift.io/node-selector"},
	} {
		project := "selector-" + name
		admin.May("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: "+project+", annotations: {"+tt.annotation+"}}}")
		t.Cleanup(func() { c.OC("delete", "namespace", project, "--wait=false") })
		c.WaitFor("the accounts of "+project, func(context.Context) error {
			_, err := admin.Try("GET", kit.CorePath(project, "serviceaccounts/default"), "")
			return err
		})
		selector := tt.pod
		if selector == "" {
			selector = "{}"
		}
		body := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeSelector: " + selector + ", containers: [{name: main, image: none}]}}"
		if tt.refusal != "" {
			admin.MayNot("POST", kit.CorePath(project, "pods"), body, tt.refusal)
			continue
		}
		has(t, admin.May("POST", kit.CorePath(project, "pods"), body), tt.want)
	}
}
