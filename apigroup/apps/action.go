package apps

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "github.com/openshift/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// action is what subresources and resources share that do something instead of storing what they are sent. T points to the wire type of
// the body.
type action[T runtime.Object] struct{ kind string }

// New makes an empty body.
func (action[T]) New() runtime.Object {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// Destroy has nothing to give back.
func (action[T]) Destroy() {}

// GroupVersionKind is the body's.
func (a action[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return appsv1.GroupVersion.WithKind(a.kind)
}

// about is the body, which must be about the object of the address.
func (a action[T]) about(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, of func(T) string) (T, error) {
	asked, ok := body.(T)
	if !ok {
		return asked, errors.NewBadRequest(fmt.Sprintf("the body is a %T, want a %s", body, a.kind))
	}
	if got := of(asked); got != name {
		return asked, errors.NewBadRequest(fmt.Sprintf("the name %q of the body does not match the name %q of the address", got, name))
	}
	if validate != nil {
		return asked, validate(ctx, asked)
	}
	return asked, nil
}
