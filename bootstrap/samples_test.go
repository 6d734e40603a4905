package bootstrap

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ofKind returns the samples of a kind by name.
func ofKind(t *testing.T, kind string) map[string]*unstructured.Unstructured {
	t.Helper()
	all, err := samples()
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]*unstructured.Unstructured{}
	for _, object := range all {
		if object.GetNamespace() != "openshift" || object.GetAnnotations()[onceAnnotation] == "" {
			t.Errorf("%s %q is not in the project openshift or lacks the annotation for objects that are created once", object.GetKind(), object.GetName())
		}
		if object.GetKind() == kind {
			samples[object.GetName()] = object
		}
	}
	return samples
}

func TestStreamsOfLanguagesAreBuildersWithAnExample(t *testing.T) {
	streams := ofKind(t, "ImageStream")
	if names := slices.Sorted(maps.Keys(streams)); !slices.Equal(names, []string{"golang", "nodejs", "python"}) {
		t.Errorf("the image streams are %s", names)
	}
	for name, stream := range streams {
		if output := stream.GetAnnotations()["openshift.io/display-name"]; output == "" {
			t.Errorf("stream %q has no display name", name)
		}
		tags, _, err := unstructured.NestedSlice(stream.Object, "spec", "tags")
		if err != nil || len(tags) != 2 {
			t.Fatalf("stream %q has tags %v, %v", name, tags, err)
		}
		for i, supports := range []string{name, name + ":" + tags[1].(map[string]any)["name"].(string) + "," + name} {
			about := tags[i].(map[string]any)["annotations"].(map[string]any)
			if about["tags"] != "builder,"+name || about["supports"] != supports {
				t.Errorf("a tag of stream %q returns %v", name, about)
			}
			if _, err := os.Stat(filepath.Join("..", about["sampleContextDir"].(string))); err != nil {
				t.Errorf("stream %q has no example: %v", name, err)
			}
		}
	}
}

func TestQuickstartsUseTheParametersThatTheyHave(t *testing.T) {
	templates := ofKind(t, "Template")
	want := []string{"golang-example", "httpd-example", "nodejs-example", "python-example", "python-persistent-example"}
	if names := slices.Sorted(maps.Keys(templates)); !slices.Equal(names, want) {
		t.Errorf("the templates are %s", names)
	}
	reference := regexp.MustCompile(`\$\{(\w+)\}`)
	for name, template := range templates {
		text, err := json.Marshal(template.Object["objects"])
		if err != nil {
			t.Fatal(err)
		}
		inUse, declared := map[string]bool{}, map[string]bool{}
		for _, match := range reference.FindAllSubmatch(text, -1) {
			inUse[string(match[1])] = true
		}
		for _, parameter := range template.Object["parameters"].([]any) {
			declared[parameter.(map[string]any)["name"].(string)] = true
		}
		if !maps.Equal(inUse, declared) {
			t.Errorf("template %q uses the parameters %v and has %v", name, inUse, declared)
		}
	}
}
