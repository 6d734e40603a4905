package apiserver

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newObject creates an empty object.
func newObject[T runtime.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// newList creates an empty list of a registered kind.
func newList(scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Object {
	list, err := scheme.New(kind)
	if err != nil {
		// The test that serves every group checks that this error cannot occur.
		panic(fmt.Sprintf("create %s: %v", kind, err))
	}
	return list
}

// eachItem calls do for each object in a list.
func eachItem[T Object](list runtime.Object, do func(T)) {
	// EachListItem cannot return an error: the callback never does, and every wire list type has
	// items.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		do(item.(T))
		return nil
	})
}

// fieldOf returns a field of an object's struct, such as its Spec.
func fieldOf(object runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

// keepField restores a field of an object from old.
func keepField(object, old runtime.Object, name string) {
	fieldOf(object, name).Set(fieldOf(old, name))
}
