package apiserver

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Action is what subresources and resources share that do something instead of storing what they are sent. T points to the wire type of
// the body.
type Action[T runtime.Object] struct {
	// Kind is the body's.
	Kind schema.GroupVersionKind
}

// New makes an empty body.
func (Action[T]) New() runtime.Object {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// Destroy has nothing to give back.
func (Action[T]) Destroy() {}

// GroupVersionKind is the body's.
func (a Action[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return a.Kind }

// About is the body, which must be about the object that the address names. named is the name that the body has.
func (a Action[T]) About(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, named func(T) string) (T, error) {
	asked, ok := body.(T)
	if !ok {
		return asked, errors.NewBadRequest(fmt.Sprintf("the body is a %T, want a %s", body, a.Kind.Kind))
	}
	if got := named(asked); got != name {
		return asked, errors.NewBadRequest(fmt.Sprintf("the name %q of the body does not match the name %q of the address", got, name))
	}
	if validate != nil {
		return asked, validate(ctx, asked)
	}
	return asked, nil
}
