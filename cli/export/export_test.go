package export

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
