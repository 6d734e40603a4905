package kube

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDefaultPolicyMatchesKubernetes compares the policy that the embedded API server creates with
// the file that the client uses to restore the default policy.
func TestDefaultPolicyMatchesKubernetes(t *testing.T) {
	const file = "../bootstrap/policy/kubernetes.json"
	roles := append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...)
	bindings := append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...)
	for i := range roles {
		roles[i].TypeMeta.APIVersion, roles[i].TypeMeta.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
	}
	for i := range bindings {
		bindings[i].TypeMeta.APIVersion, bindings[i].TypeMeta.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
	}
	got := "{\"roles\": [\n" + lines(t, roles) + "\n],\n\"bindings\": [\n" + lines(t, bindings) + "\n]}\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run go test ./kube -run DefaultPolicy -update (-want +got):\n%s", diff)
	}
}

// lines returns objects as JSON, one object per line.
func lines[T any](t *testing.T, objects []T) string {
	t.Helper()
	var all []string
	for _, object := range objects {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(content))
	}
	return strings.Join(all, ",\n")
}
