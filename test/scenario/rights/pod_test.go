package rights

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// sleeper returns a pod that sleeps, with additional lines in its spec.
func sleeper(name string, spec ...string) string {
	lines := ""
	for _, line := range spec {
		lines += "\n  " + line
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %s, command: [sleep, infinity]}]%s
`, name, kit.ToolsImage, lines)
}

func create(c *kit.Cluster, user, namespace, manifest string) (string, error) {
	return c.TryOCWithInput(manifest, append([]string{"create", "-n", namespace, "-f", "-"}, as(user)...)...)
}

func TestPodOfUserRunsRestricted(t *testing.T) {
	c := kit.Shared(t)
	request(t, c, "carol", "carol-app")
	c = c.In("carol-app")
	if out, err := create(c, "carol", "carol-app", sleeper("plain")); err != nil {
		t.Fatal(out, err)
	}
	c.WaitPodRunning("plain")
	first := strings.Split(oc(c, "carol", "get", "project", "carol-app", "-o", `jsonpath={.metadata.annotations.openshift\.io/sa\.scc\.uid-range}`), "/")[0]
	if got := c.OC("get", "pod", "plain", "-o", `jsonpath={.metadata.annotations.openshift\.io/scc} {.spec.containers[0].securityContext.runAsUser} {.spec.securityContext.fsGroup}`); got != "restricted "+first+" "+first {
		t.Errorf("scc, user and group are %q, want restricted and %s", got, first)
	}
	if id := strings.TrimSpace(c.Exec("plain", "id", "-u")); id != first {
		t.Errorf("the container runs as %s, want %s", id, first)
	}
	for name, manifest := range map[string]string{
		"initContainers[0].securityContext.privileged": sleeper("p", "initContainers: [{name: init, image: none, securityContext: {privileged: true}}]"),
		"privileged containers are not allowed":        strings.Replace(sleeper("p"), "command:", "securityContext: {privileged: true}, command:", 1),
		"must be in the ranges":                        strings.Replace(sleeper("p"), "command:", "securityContext: {runAsUser: 0}, command:", 1),
		"hostPath volumes are not allowed":             sleeper("p", "volumes: [{name: v, hostPath: {path: /}}]"),
		"the host's network is not allowed":            sleeper("p", "hostNetwork: true"),
	} {
		out, err := create(c, "carol", "carol-app", manifest)
		if err == nil {
			t.Fatalf("created: %s", out)
		}
		must(t, err.Error(), "unable to validate against any security context constraint")
		must(t, err.Error(), "restricted: [")
		must(t, err.Error(), name)
	}
}

func TestConstraintsOfServiceAccountApply(t *testing.T) {
	c := kit.Shared(t)
	request(t, c, "dave", "dave-app")
	root := strings.Replace(sleeper("root", "serviceAccountName: strong"), "command:", "securityContext: {runAsUser: 0}, command:", 1)
	oc(c, "dave", "create", "serviceaccount", "strong", "-n", "dave-app")
	if _, err := create(c, "dave", "dave-app", root); err == nil {
		t.Fatal("the account can use anyuid before the grant")
	}
	// Grant the constraint in OpenShift 3's way: add the service account's name to the constraint's
	// users.
	c.OC("patch", "scc", "anyuid", "--type=json", "-p", `[{"op":"add","path":"/users/-","value":"system:serviceaccount:dave-app:strong"}]`)
	if out, err := create(c, "dave", "dave-app", root); err != nil {
		t.Fatal(out, err)
	}
	if got := c.OC("get", "pod", "root", "-n", "dave-app", "-o", `jsonpath={.metadata.annotations.openshift\.io/scc}`); got != "anyuid" {
		t.Errorf("scc is %q", got)
	}
	c.OC("patch", "scc", "anyuid", "--type=json", "-p", `[{"op":"replace","path":"/users","value":[]}]`)

	// Grant a constraint through a role.
	c.In("dave-app").Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: use-hostnetwork}
rules: [{apiGroups: [security.openshift.io], resources: [securitycontextconstraints], resourceNames: [hostnetwork], verbs: [use]}]
`)
	c.OC("create", "rolebinding", "use-hostnetwork", "--role=use-hostnetwork", "--serviceaccount=dave-app:strong", "-n", "dave-app")
	port := strings.Replace(sleeper("port", "serviceAccountName: strong"), "command:", "ports: [{containerPort: 80, hostPort: 18080}], command:", 1)
	if out, err := create(c, "dave", "dave-app", port); err != nil {
		t.Fatal(out, err)
	}
	if got := c.OC("get", "pod", "port", "-n", "dave-app", "-o", `jsonpath={.metadata.annotations.openshift\.io/scc}`); got != "hostnetwork" {
		t.Errorf("scc is %q", got)
	}
}

func TestPodsOfAdministratorAndControllers(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(sleeper("own"))
	c.Apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: made}
spec:
  selector: {matchLabels: {app: made}}
  template:
    metadata: {labels: {app: made}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: %s, command: [sleep, infinity]}]}
`, kit.ToolsImage))
	c.WaitPodRunning("own")
	if got := c.OC("get", "pod", "own", "-o", `jsonpath={.metadata.annotations.openshift\.io/scc}`); got != "anyuid" {
		t.Errorf("the administrator's pod has %q, want anyuid", got)
	}
	c.OC("wait", "--for=condition=Available", "deployment/made", "--timeout=60s")
	if got := c.OC("get", "pods", "-l", "app=made", "-o", `jsonpath={.items[0].metadata.annotations.openshift\.io/scc}`); got != "restricted" {
		t.Errorf("the deployment's pod has %q, want restricted", got)
	}
}

// Section 9 of the Cluster Administration guide lists these accounts and their permissions.
func TestControllerAccountsHaveDocumentedRights(t *testing.T) {
	c := kit.Shared(t)
	privileged := strings.Replace(sleeper("builder"), "command:", "securityContext: {privileged: true}, command:", 1)
	for account, constraint := range map[string]string{
		"build-controller": "privileged", "deployment-controller": "<none>", "replication-controller": "<none>",
	} {
		c.OC("get", "serviceaccount", account, "-n", "openshift-infra")
		user := "system:serviceaccount:openshift-infra:" + account
		if got := c.OC("auth", "can-i", "create", "pods", "--as="+user); got != "yes\n" {
			t.Errorf("%s can create pods: %q, want yes", account, got)
		}
		out, err := c.TryOCWithInput(privileged, "policy", "scc-subject-review", "-u", user, "-f", "-", "--no-headers")
		if got := strings.Fields(out); err != nil || len(got) != 2 || got[1] != constraint {
			t.Errorf("a privileged pod of %s is allowed by %q (%v), want %s", account, out, err, constraint)
		}
	}
}
