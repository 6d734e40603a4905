package apiserver

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Action is the common part of resources and subresources that perform an action and store nothing.
// T is a pointer to the wire type of the request body.
type Action[T runtime.Object] struct {
	// Kind is the kind of the request body.
	Kind schema.GroupVersionKind
}

// New creates an empty request body.
func (Action[T]) New() runtime.Object {
	return newObject[T]()
}

// Destroy is a no-op, because an action uses no resources that must be released.
func (Action[T]) Destroy() {}

// GroupVersionKind returns the kind of the request body.
func (a Action[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind { return a.Kind }

// About checks the request body and returns it as a T. It returns an error if the body is not a T,
// if nameOf(body) is not name, or if validate, which can be nil, rejects the body.
func (a Action[T]) About(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc,
	nameOf func(T) string) (T, error) {
	typed, ok := body.(T)
	if !ok {
		return typed, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, must be a %s", body, a.Kind.Kind))
	}
	if got := nameOf(typed); got != name {
		return typed, apierrors.NewBadRequest(fmt.Sprintf("the name %q in the body does not match the name %q in the URL", got, name))
	}
	if validate != nil {
		return typed, validate(ctx, typed)
	}
	return typed, nil
}

// RejectDryRun returns an error if a request is a dry run. Actions call it if their result depends
// on what they store, such as the number of the next build.
func RejectDryRun(options *metav1.CreateOptions) error {
	if options != nil && len(options.DryRun) > 0 {
		return apierrors.NewBadRequest("this request cannot be a dry run; send it without dryRun")
	}
	return nil
}
