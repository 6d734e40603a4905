package bootstrap

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
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
			t.Errorf("the changed class has become %v, %v", remaining, err)
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
