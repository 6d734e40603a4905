package export

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// TestExportStripsClusterFields strips the objects in testdata/export.yaml and compares the results
// with golden files.
func TestExportStripsClusterFields(t *testing.T) {
	for name, exact := range map[string]bool{"export.golden": false, "export-exact.golden": true} {
		text := ""
		for _, object := range objectstest.Load(t, "testdata/export.yaml") {
			strip(object, exact)
			content, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			text += "---\n" + string(content)
		}
		objectstest.Golden(t, "testdata/"+name, text)
	}
}

func TestExportedTemplateContainsObjects(t *testing.T) {
	objects := []runtime.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "front"}}}}
	template, err := (&export{template: "shop"}).together(objects)
	if err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	objectstest.Golden(t, "testdata/export-template.golden", string(content))
	if object, _ := (&export{}).together(objects); object != objects[0] {
		t.Errorf("one object results in %v", object)
	}
}

func TestExportedServicesHaveNoAddressesOfCluster(t *testing.T) {
	for _, tt := range []struct {
		name, spec string
		exact      bool
		want       string
	}{
		{"cluster IP", "{clusterIP: 172.30.0.1, clusterIPs: [172.30.0.1], ports: [{port: 80}]}", false, "{ports: [{port: 80}]}"},
		{"headless", "{clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}", false, "{clusterIP: None, clusterIPs: [None], ports: [{port: 80}]}"},
		{"no ports", "{type: ExternalName, externalName: example.com}", false, "{type: ExternalName, externalName: example.com}"},
		{
			"node ports", "{type: LoadBalancer, clusterIP: 172.30.0.1, healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 30443}]}", false,
			"{type: LoadBalancer, ports: [{port: 80}, {port: 443}]}",
		},
		{"exact", "{type: NodePort, clusterIP: 172.30.0.1, ports: [{port: 80, nodePort: 30080}]}", true, "{type: NodePort, clusterIP: 172.30.0.1, ports: [{port: 80, nodePort: 30080}]}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			object := func(spec string) *unstructured.Unstructured {
				text, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Service, metadata: {name: front}, spec: " + spec + "}"))
				if err != nil {
					t.Fatal(err)
				}
				object := &unstructured.Unstructured{}
				if err := object.UnmarshalJSON(text); err != nil {
					t.Fatal(err)
				}
				return object
			}
			got := object(tt.spec)
			strip(got, tt.exact)
			if diff := cmp.Diff(object(tt.want).Object, got.Object); diff != "" {
				t.Errorf("service (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExportOfObjectsFromServer(t *testing.T) {
	service := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "1"},
			"spec": map[string]any{"clusterIP": "172.30.0.1", "selector": map[string]any{"app": name}},
		}
	}
	const stripped = "apiVersion: v1\nkind: Service\nmetadata:\n  name: front\nspec:\n  selector:\n    app: front\n"
	for name, tt := range map[string]struct{ args, out, failure string }{
		"object":                {"svc/front", stripped, ""},
		"unchanged object":      {"svc/front --raw", "uid: \"1\"\n", ""},
		"name of a template":    {"svc/front --as-template=mine -o name", "template.template.openshift.io/mine\n", ""},
		"missing object":        {"svc/none", "", "could not find the requested resource"},
		"nothing named":         {"", "", "specify what to export, such as svc/front or all"},
		"contradictory options": {"svc/front --exact --raw", "", "--exact and --raw cannot be used together"},
		"unknown output format": {"svc/front -o picture", "", "unable to match a printer"},
	} {
		t.Run(name, func(t *testing.T) {
			server := objectstest.NewServer(t, map[string]any{
				"GET /api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
				"GET /apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
				"GET /api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
					map[string]any{"name": "services", "singularName": "service", "shortNames": []any{"svc"}, "namespaced": true, "kind": "Service", "verbs": []any{"get", "list"}},
				}},
				"GET /api/v1/namespaces/shop/services/front": service("front"),
			})
			out, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return New(server.Factory(t), streams)
			}, strings.Fields(tt.args)...)
			if !strings.Contains(failure, tt.failure) || tt.failure == "" && failure != "" {
				t.Errorf("failure %q, want %q", failure, tt.failure)
			}
			if !strings.Contains(out, tt.out) || tt.out == "" && out != "" {
				t.Errorf("output\n%swant\n%s", out, tt.out)
			}
			if writes := server.Writes(); len(writes) > 0 {
				t.Errorf("the export changes the cluster: %q", writes)
			}
		})
	}
}
