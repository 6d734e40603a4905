package bootstrap

import "testing"

func TestEveryEmbeddedObjectHasNameAndType(t *testing.T) {
	objects, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		t.Fatal("no objects are embedded")
	}
	seen := map[string]bool{}
	for _, object := range objects {
		id := object.GroupVersionKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
		if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
			t.Errorf("object %q lacks a name, a kind or an API version", id)
		}
		if seen[id] {
			t.Errorf("object %q is embedded twice", id)
		}
		seen[id] = true
	}
}
