// Package objectstest provides fake clusters that contain the objects in a file, and compares
// output with golden files.
package objectstest

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

// Load reads the objects in a file of YAML documents, in order.
func Load(t testing.TB, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		text, convert := yaml.YAMLToJSON(document)
		object := &unstructured.Unstructured{}
		if err := errors.Join(err, convert, object.UnmarshalJSON(text)); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
}

// Client returns a fake client for a cluster that contains the given objects. kinds contains the
// API version and kind of each additional kind that can be listed, such as {"v1", "Pod"}.
func Client(all []*unstructured.Unstructured, kinds ...[2]string) dynamic.Interface {
	lists := map[schema.GroupVersionResource]string{}
	for _, kind := range kinds {
		resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(kind[0], kind[1]))
		lists[resource] = kind[1] + "List"
	}
	var objects []runtime.Object
	for _, object := range all {
		objects = append(objects, object)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
}

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with a file's content. If the -update test flag is set, it first writes got
// to the file.
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update rewrites it:\n%s", file, diff)
	}
}
