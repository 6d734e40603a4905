package project

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestAdministratorCreatesProject(t *testing.T) {
	for _, tt := range []struct {
		name, args, annotations string
		bound                   bool
	}{
		{"name alone", "blog", `{}`, false},
		{"display name and description", "blog --display-name=Blog --description=Text",
			`{"openshift.io/description":"Text","openshift.io/display-name":"Blog"}`, false},
		{"empty node selector disables the default", "blog --node-selector=", `{"openshift.io/node-selector":""}`, false},
		{"administrator", "blog --admin=bob", `{}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := objectstest.NewServer(t, map[string]any{
				"GET /apis/rbac.authorization.k8s.io/v1/namespaces/blog/rolebindings": map[string]any{"kind": "RoleBindingList", "apiVersion": "rbac.authorization.k8s.io/v1"},
			})
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return NewAdm(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if failure != "" || out != "Created project blog\n" {
				t.Errorf("got %q, failure %q", out, failure)
			}
			writes := server.Writes()
			want := `POST /apis/project.openshift.io/v1/projects {"apiVersion":"project.openshift.io/v1","kind":"Project","metadata":{"annotations":` +
				tt.annotations + `,"name":"blog"}}`
			if diff := cmp.Diff(want, writes[0]); diff != "" {
				t.Errorf("project (-want +got):\n%s", diff)
			}
			bound := slices.ContainsFunc(writes, func(write string) bool {
				return strings.HasPrefix(write, "POST /apis/rbac.authorization.k8s.io/v1/namespaces/blog/rolebindings") && strings.Contains(write, "bob")
			})
			if bound != tt.bound {
				t.Errorf("got binding %v, want %v: %q", bound, tt.bound, writes)
			}
		})
	}
}
