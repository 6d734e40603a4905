package bootstrap

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestObjectsCreatedOnceAreNotReverted(t *testing.T) {
	classes := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	objects, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "StorageClass" {
			continue
		}
		kinds := map[schema.GroupVersionResource]string{classes: "StorageClassList"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds).Resource(classes)
		if err := apply(t.Context(), client, object); err != nil {
			t.Fatal(err)
		}
		changed, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(changed.Object, "Retain", "reclaimPolicy"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := apply(t.Context(), client, object); err != nil {
			t.Fatal(err)
		}
		remaining, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil || remaining.Object["reclaimPolicy"] != "Retain" {
			t.Errorf("the changed class is now %v, %v", remaining, err)
		}
		return
	}
	t.Error("no StorageClass is embedded")
}

func TestLocalStorageCanBeDisabled(t *testing.T) {
	objects, err := load(LocalStorage)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "StorageClass" {
			t.Errorf("StorageClass %q is embedded", object.GetName())
		}
	}
}

// TestUnchangedObjectsAreNotApplied checks that a second start does not write unchanged objects.
func TestUnchangedObjectsAreNotApplied(t *testing.T) {
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	object := func(data map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "openshift"}, "data": data,
		}}
		if err := setContent(object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for name, test := range map[string]struct {
		stored, value map[string]any
		applied       bool
	}{
		"same content":  {map[string]any{"a": "1"}, map[string]any{"a": "1"}, false},
		"changed value": {map[string]any{"a": "1"}, map[string]any{"a": "2"}, true},
		"new key":       {map[string]any{"a": "1"}, map[string]any{"a": "1", "b": "2"}, true},
		"removed key":   {map[string]any{"a": "1", "b": "2"}, map[string]any{"a": "1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := map[schema.GroupVersionResource]string{maps: "ConfigMapList"}
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, object(test.stored))
			client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, object(test.value), nil // the fake client does not support apply
			})
			if err := apply(t.Context(), client.Resource(maps).Namespace("openshift"), object(test.value)); err != nil {
				t.Fatal(err)
			}
			writes := slices.DeleteFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "get" })
			if applied := len(writes) > 0; applied != test.applied {
				t.Errorf("got writes %v, want a write: %t", writes, test.applied)
			}
		})
	}
}

func TestContains(t *testing.T) {
	stored := map[string]any{"name": "a", "ports": []any{map[string]any{"port": int64(80), "protocol": "TCP"}}}
	for name, test := range map[string]struct {
		value map[string]any
		want  bool
	}{
		"default value of a field in a list": {map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}, true},
		"other value":                        {map[string]any{"ports": []any{map[string]any{"port": int64(81)}}}, false},
		"longer list":                        {map[string]any{"ports": []any{map[string]any{}, map[string]any{}}}, false},
		"shorter list":                       {map[string]any{"ports": []any{}}, false},
		"other type":                         {map[string]any{"name": map[string]any{"first": "a"}}, false},
		"missing field":                      {map[string]any{"kind": "a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contains(stored, test.value); got != test.want {
				t.Errorf("contains is %t, want %t", got, test.want)
			}
		})
	}
}
