package set

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// TestOutputChangesNothing runs commands for which -o implies a dry run in OpenShift 3.11.
func TestOutputChangesNothing(t *testing.T) {
	if err := errors.Join(Register(), build.Register(), deploymentconfig.Register()); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/apps/v1/namespaces/shop/deployments/web"
	deployment := objectstest.Load(t, "testdata/deployment.yaml")[0]
	deployment.SetName("web")
	deployment.SetNamespace("shop")
	server := objectstest.NewServer(t, map[string]any{
		"GET /api": metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"GET /apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{{
			Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apps/v1", Version: "v1"}},
			PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"},
		}}},
		"GET /apis/apps/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", Namespaced: true, Kind: "Deployment", Verbs: metav1.Verbs{"get", "list", "patch"}},
		}},
		"GET " + path: deployment, "PATCH " + path: deployment,
	})
	deployment = deployment.DeepCopy()
	deployment.SetName("unwritten") // an object that does not exist on the server
	text, err := deployment.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(t.TempDir(), "deployment.json")
	if err := os.WriteFile(written, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args    string
		changes bool
	}{
		{"probe deployments/web --liveness --open-tcp=80 -o name", false},
		{"env deployments/web NEW=1 -o name", false},
		{"image deployments/web web=example.com/new -o name", false},
		{"env -f " + written + " NEW=1 -o name", false},
		{"probe deployments/web --liveness --open-tcp=80", true},
		{"env deployments/web NEW=1 -o name --dry-run=none", true},
	} {
		before := len(server.Writes())
		out, errOut, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
			command := &cobra.Command{Use: "set"}
			command.AddCommand(Commands(server.Factory(t), streams)...)
			return command
		}, strings.Fields(test.args)...)
		patched := slices.ContainsFunc(server.Writes()[before:], func(request string) bool { return strings.HasPrefix(request, "PATCH "+path) })
		if failure != "" || patched != test.changes || !strings.Contains(out, "deployment.apps/") {
			t.Errorf("oc set %s: failure %q, prints %q and %q, patches %t", test.args, failure, out, errOut, patched)
		}
	}
}
