package apiserver

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newObject makes an empty object.
func newObject[T runtime.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// newList makes an empty list of a kind that the group has registered.
func newList(scheme *runtime.Scheme, kind schema.GroupVersionKind) runtime.Object {
	list, err := scheme.New(kind)
	if err != nil {
		panic(fmt.Sprintf("make %s: %v", kind, err)) // found by the test that serves every group
	}
	return list
}

// eachItem calls a function with each object of a list.
func eachItem[T Object](list runtime.Object, do func(T)) {
	// The function's own error is nil, and every list of the wire types has items.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		do(item.(T))
		return nil
	})
}

// part is a field of an object's struct, such as its Spec.
func part(object runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

// keepPart sets a field of an object to what it was in old.
func keepPart(object, old runtime.Object, name string) { part(object, name).Set(part(old, name)) }
