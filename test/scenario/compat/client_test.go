package compat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// step is one command in a session. Its output must contain want. If fails is set, the command must
// fail, and its error must contain want.
type step struct {
	command string
	want    string
	fails   bool
}

// run runs the steps in order. It replaces NS in a step with the test's namespace.
func run(t *testing.T, c *kit.Cluster, steps []step) {
	t.Helper()
	for _, step := range steps {
		fill := strings.NewReplacer("NS", c.Namespace).Replace
		got, err := c.TryOC(strings.Fields(fill(step.command))...)
		if err != nil {
			got = err.Error()
		}
		if (err != nil) != step.fails || !strings.Contains(got, fill(step.want)) {
			t.Errorf("oc %s: failed %t, want %t; want %q in:\n%s", step.command, err != nil, step.fails, step.want, got)
		}
	}
}

func TestRolesAreBoundWithTheFormsOf311(t *testing.T) {
	run(t, kit.Shared(t), []step{
		{"policy add-role-to-user view alice --dry-run", `role "view" added: "alice" (dry run)`, false},
		{"policy add-role-to-user view alice -o yaml", "name: alice", false},
		{"get rolebindings", "system:deployers", false},
		{"policy remove-role-from-user view alice", "unable to find target [alice]", true},
		{"policy add-role-to-user view alice --rolebinding-name=custom", `role "view" added: "alice"`, false},
		{"policy add-role-to-user edit alice --rolebinding-name=custom", "rolebinding custom found for role view, not edit", true},
		{"policy add-role-to-user view -z one,two --rolebinding-name=custom", `role "view" added: ["one" "two"]`, false},
		{"policy remove-role-from-user view alice --rolebinding-name=custom -o yaml", "name: two", false},
		{"policy remove-user alice --dry-run", "Removing view from users [alice] in project NS (dry run).", false},
		{"policy remove-user alice", "Removing view from users [alice] in project NS.", false},
		{"policy remove-user alice", "Users [alice] were not bound to roles in project NS.", false},
		{"policy who-can create builds/docker", "Resource:  builds/docker.build.openshift.io", false},
		{"policy who-can get hpa.v1.autoscaling", "Resource:  horizontalpodautoscalers.autoscaling", false},
		{"policy who-can get nothing -o yaml", "users:", false},
		{"policy can-i --list -o yaml", "kind: SelfSubjectRulesReview", false},
		{"adm policy add-scc-to-group anyuid team --dry-run", `scc "anyuid" added to groups: ["team"] (dry run)`, false},
	})
}

func TestReferencesToDeletedUsersArePruned(t *testing.T) {
	c := kit.Shared(t)
	run(t, c, []step{
		{"policy add-role-to-user view leaver --rolebinding-name=leaver", "added", false},
		{"adm policy add-scc-to-user anyuid leaver", `scc "anyuid" added to: ["leaver"]`, false},
		{"adm groups new NS-team leaver stayer", "NS-team", false},
		{"create role reader --verb=get --resource=pods", "created", false},
		{"policy add-role-to-user reader stayer --role-namespace=NS --rolebinding-name=reader", "added", false},
		{"adm prune auth users/leaver", "group.user.openshift.io/NS-team updated", false},
		{"get rolebinding leaver -o jsonpath={.subjects}", "", false},
		{"get scc anyuid -o jsonpath={.users}", "[]", false},
		{"get group NS-team -o jsonpath={.users}", `["stayer"]`, false},
		{"adm prune auth role/reader", "rolebinding.rbac.authorization.k8s.io/reader deleted", false},
		{"delete group NS-team", "deleted", false},
	})
}

func TestSecretsAreExtractedAndLinked(t *testing.T) {
	c := kit.Shared(t)
	dir := t.TempDir()
	run(t, c, []step{
		{"create secret generic login --from-literal=user=alice", "created", false},
		{"extract secret/login --to=" + dir, filepath.Join(dir, "user"), false},
		{"extract secret/login --to=" + dir, "user: file exists, pass --confirm to overwrite", true},
		{"extract secret/login --to=" + dir + " --confirm", filepath.Join(dir, "user"), false},
		{"secrets link default login", "", false},
		{"secrets unlink default login", "", false},
		{"secrets unlink default login", "No valid secrets found or secrets not linked to service account", true},
		{"secrets unlink default missing", `secret "missing" not found`, true},
		{"secrets new other --type=blah key=/dev/null", `unknown secret type "blah"`, true},
	})
	if content, err := os.ReadFile(filepath.Join(dir, "user")); err != nil || string(content) != "alice" {
		t.Errorf("extracted %q, %v", content, err)
	}
}

func TestManifestsOf311AreAcceptedByTheClient(t *testing.T) {
	c := kit.Shared(t)
	dir := t.TempDir()
	list := `{"kind": "ImageStreamList", "apiVersion": "v1", "items": [{"kind": "ImageStream", "apiVersion": "v1", "metadata": {"name": "ruby"}}]}`
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: unknown}, spec: {containers: [{name: a, image: a, capabilities: {}}]}}"
	template := `{apiVersion: v1, kind: Template, metadata: {name: large}, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: large, generation: 9223372036854775807}}]}`
	for name, text := range map[string]string{"list.json": list, "pod.yaml": pod, "template.yaml": template} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, c, []step{
		{"create -f " + dir + "/list.json", "imagestream.image.openshift.io/ruby created", false},
		{"create -f " + dir + "/list.json", dir + "/list.json", true},
		{"create -f " + dir + "/pod.yaml", "pod/unknown created", false},
		{"process -f " + dir + "/template.yaml", "9223372036854775807", false},
		{"create istag ruby:3 -A key=value", "created", false},
		{"create istag ruby:4 -A key", `annotations must be of the form key=value, but is "key"`, true},
	})
}
