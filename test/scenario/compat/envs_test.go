package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// write writes a test file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestEnvironmentsAreResolved(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "secret", "generic", "keys", "--from-literal=user=joe")
	c.OC("create", "-f", write(t, `
{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: web}, spec: {replicas: 0,
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: localhost/web, env: [
    {name: USER, valueFrom: {secretKeyRef: {name: keys, key: user}}}, {name: NONE, valueFrom: {secretKeyRef: {name: missing, key: a}}}]}]}}}}
`))
	run(t, c, []step{
		{"set env dc/web --list", "# deploymentconfigs/web, container web\n# USER from secret keys, key user\n", false},
		{"set env dc/web --list --resolve", "error: deploymentconfigs/web failed to retrieve valueFrom references", true},
		{"set env dc/web NONE-", "updated", false},
		{"set env dc/web --list --resolve", "USER=joe", false},
		{"set env dc/web A=b --resource-version=1", "the object has been modified", true},
		{"set env dc/web --list", "# USER from secret keys, key user\n", false},
	})
	// Retry, because the controller can write the status concurrently.
	c.WaitFor("change of the current version", func(context.Context) error {
		_, err := c.TryOC("set", "env", "dc/web", "A=b", "--resource-version="+c.OC("get", "dc/web", "-o", "jsonpath={.metadata.resourceVersion}"))
		return err
	})
}

func TestListsAndReviewsAreSentWithoutWarnings(t *testing.T) {
	c := kit.Shared(t)
	list := write(t, `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: two}}]}`)
	review := write(t, `{apiVersion: authorization.openshift.io/v1, kind: SubjectAccessReview, verb: get, resource: pods, namespace: default}`)
	for file, want := range map[string]string{list: "configmap/one created\nconfigmap/two created\n", review: ""} {
		result := c.Slipway("oc", "--namespace", c.Namespace, "create", "-f", file)
		if result.Code != 0 || result.Stderr != "" || want != "" && result.Stdout != want {
			t.Errorf("exit code %d, standard error %q, output %q", result.Code, result.Stderr, result.Stdout)
		}
	}
}

func TestReasonsDoNotContainAuthorizer(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "clusterrolebinding", "broken", "--clusterrole=missing", "--user=reasons")
	t.Cleanup(func() { c.OC("delete", "clusterrolebinding", "broken") })
	c.WaitFor("binding", func(context.Context) error {
		_, err := c.TryOC("get", "pods", "--as=reasons")
		if want := `in the namespace "` + c.Namespace + `": RBAC: clusterrole.rbac.authorization.k8s.io "missing" not found`; err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("response %v, want %s", err, want)
		}
		return nil
	})
}

func TestScopeForAccessChecksCoversOnlyOwnReviews(t *testing.T) {
	c := kit.Shared(t)
	c.OC("create", "user", "scoped")
	t.Cleanup(func() { c.OC("delete", "user", "scoped") })
	c.OC("policy", "add-role-to-user", "admin", "scoped")
	name := strings.Repeat("check", 8)
	c.OC("create", "-f", write(t, fmt.Sprintf(`{apiVersion: oauth.openshift.io/v1, kind: OAuthAccessToken, metadata: {name: %s}, clientName: openshift-challenging-client,
  expiresIn: 86400, redirectURI: "%s/oauth/token/implicit", scopes: ["user:check-access"], userName: scoped, userUID: %q}`,
		name, c.Config.Host, c.OC("get", "user", "scoped", "-o", "jsonpath={.metadata.uid}"))))
	t.Cleanup(func() { c.OC("delete", "oauthaccesstoken", name) })
	token := " --token=" + name
	c.WaitFor("role", func(context.Context) error {
		if got, err := c.TryOC("policy", "can-i", "create", "pods", "--ignore-scopes", "--token="+name); err != nil || got != "yes\n" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
	run(t, c, []step{
		{"policy can-i create pods" + token, "no", false},
		{"policy can-i create subjectaccessreviews" + token, "no", false},
		{"policy can-i create subjectaccessreviews --ignore-scopes" + token, "yes", false},
		{"policy can-i create pods --scopes=role:admin:*" + token, "yes", false},
		{"get pods" + token, "scopes [user:check-access] prevent this action", true},
	})
}
