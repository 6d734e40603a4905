package export

import (
	"testing"

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
