package kube

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestDefaultPolicyIsThatOfThisKubernetes compares the file from which the client restores the
// default policy with what the embedded API server creates.
func TestDefaultPolicyIsThatOfThisKubernetes(t *testing.T) {
	const file = "../bootstrap/policy/kubernetes.yaml"
	header := "# The default policy of Kubernetes. `go test ./kube -run DefaultPolicy -update` writes this file.\n"
	roles := append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...)
	bindings := append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...)
	for i := range roles {
		roles[i].TypeMeta.APIVersion, roles[i].TypeMeta.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRole"
	}
	for i := range bindings {
		bindings[i].TypeMeta.APIVersion, bindings[i].TypeMeta.Kind = rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"
	}
	content, err := yaml.Marshal(map[string]any{"roles": roles, "bindings": bindings})
	if err != nil {
		t.Fatal(err)
	}
	got := header + string(content)
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
