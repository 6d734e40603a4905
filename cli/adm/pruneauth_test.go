package adm

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// references is a list of objects that refer to users, groups and roles.
const references = `
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: edit, namespace: shop}, roleRef: {kind: ClusterRole, name: edit},
   subjects: [{kind: User, name: alice}, {kind: Group, name: alice}, {kind: User, name: bob}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: own, namespace: shop}, roleRef: {kind: Role, name: edit},
   subjects: [{kind: User, name: bob}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: own, namespace: blog}, roleRef: {kind: Role, name: edit}, subjects: []}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: edit}, roleRef: {kind: ClusterRole, name: edit},
   subjects: [{kind: Group, name: dev}]}
- {apiVersion: security.openshift.io/v1, kind: SecurityContextConstraints, metadata: {name: restricted}, users: [alice, bob], groups: [dev, alice]}
- {apiVersion: user.openshift.io/v1, kind: Group, metadata: {name: dev}, users: [alice]}
- {apiVersion: oauth.openshift.io/v1, kind: OAuthClientAuthorization, metadata: {name: "alice:console"}, userName: alice}
- {apiVersion: oauth.openshift.io/v1, kind: OAuthClientAuthorization, metadata: {name: "bob:console"}, userName: bob}
`

func TestPruningRemovesReferences(t *testing.T) {
	for _, tt := range []struct {
		kind, namespace, name string
		want                  []string
	}{
		{"users", "", "alice", []string{
			"group.user.openshift.io/dev updated", "oauthclientauthorization.oauth.openshift.io/alice:console deleted",
			"rolebinding.rbac.authorization.k8s.io/edit updated", "securitycontextconstraints.security.openshift.io/restricted updated",
		}},
		{"users", "", "carol", nil},
		{"groups", "", "dev", []string{
			"clusterrolebinding.rbac.authorization.k8s.io/edit updated", "securitycontextconstraints.security.openshift.io/restricted updated",
		}},
		{"clusterroles", "", "edit", []string{
			"clusterrolebinding.rbac.authorization.k8s.io/edit deleted", "rolebinding.rbac.authorization.k8s.io/edit deleted",
		}},
		{"roles", "shop", "edit", []string{"rolebinding.rbac.authorization.k8s.io/own deleted"}},
	} {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			var out strings.Builder
			pruning := newPruning(t, &out)
			info := &resource.Info{
				Name: tt.name, Namespace: tt.namespace, Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: tt.kind}},
			}
			if err := pruning.prune(t.Context(), info); err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSpace(out.String()), "\n")
			slices.Sort(got)
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPruningOfUserKeepsOtherSubjects(t *testing.T) {
	pruning := newPruning(t, &strings.Builder{})
	info := &resource.Info{Name: "alice", Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: "users"}}}
	if err := pruning.prune(t.Context(), info); err != nil {
		t.Fatal(err)
	}
	field := func(group, plural, namespace, name, field string) any {
		object, err := pruning.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).
			Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object.Object[field]
	}
	got := []any{
		field("rbac.authorization.k8s.io", "rolebindings", "shop", "edit", "subjects"),
		field("security.openshift.io", "securitycontextconstraints", "", "restricted", "users"),
		field("security.openshift.io", "securitycontextconstraints", "", "restricted", "groups"),
		field("user.openshift.io", "groups", "", "dev", "users"),
	}
	want := []any{
		[]any{map[string]any{"kind": "Group", "name": "alice"}, map[string]any{"kind": "User", "name": "bob"}},
		[]any{"bob"}, []any{"dev", "alice"}, []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestPruningNeedsAnObject(t *testing.T) {
	server := objectstest.NewServer(t, nil)
	_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
		return newPruneAuth(server.Factory(t), streams)
	})
	if !strings.Contains(failure, "You must provide one or more resources") {
		t.Errorf("got failure %q", failure)
	}
	info := &resource.Info{Name: "web", Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: "pods"}}}
	if err := newPruning(t, &strings.Builder{}).prune(t.Context(), info); err == nil || err.Error() != `prune pods "web": must be a user, group, role or clusterrole` {
		t.Errorf("got error %v", err)
	}
}

// newPruning returns an authPruning that uses a fake client with the objects in references, and
// that prints to out.
func newPruning(t *testing.T, out *strings.Builder) *authPruning {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(references), &list); err != nil {
		t.Fatal(err)
	}
	plurals := map[string]string{
		"RoleBinding": "rolebindings", "ClusterRoleBinding": "clusterrolebindings", "SecurityContextConstraints": "securitycontextconstraints",
		"Group": "groups", "OAuthClientAuthorization": "oauthclientauthorizations",
	}
	kinds := map[schema.GroupVersionResource]string{}
	resources := make([]schema.GroupVersionResource, len(list))
	for i, object := range list {
		gvk := schema.FromAPIVersionAndKind(object["apiVersion"].(string), object["kind"].(string))
		resources[i] = gvk.GroupVersion().WithResource(plurals[gvk.Kind])
		kinds[resources[i]] = gvk.Kind + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for i, object := range list {
		object := &unstructured.Unstructured{Object: object}
		if _, err := client.Resource(resources[i]).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return &authPruning{out: out, client: client}
}
