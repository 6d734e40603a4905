// Package store reads and writes the OAuth server's API objects within the process. It sends no API
// requests, so tokens and codes do not appear in request logs.
package store

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Objects reads and writes the objects of one resource. Errors are API errors
// (k8s.io/apimachinery/pkg/api/errors): NotFound, Conflict or Invalid.
type Objects[T runtime.Object] interface {
	// Get reads an object from the store.
	Get(ctx context.Context, name string) (T, error)
	// Cached reads an object from the watch cache. If the cache does not contain the object, Cached
	// reads the object from the store. Callers must not modify the object.
	Cached(ctx context.Context, name string) (T, error)
	// Where returns the objects whose field has the given value. The resource must support the
	// field in field selectors.
	Where(ctx context.Context, field, value string) ([]T, error)
	Create(ctx context.Context, object T) (T, error)
	// Update replaces an object unless it has changed since it was read.
	Update(ctx context.Context, object T) (T, error)
	// Delete deletes an object. If several calls delete the same object concurrently, exactly one
	// of them succeeds.
	Delete(ctx context.Context, name string) error
}

// Of returns the objects of an API server resource. The caller must fill stores before the first
// use of the objects, but can do so after the call.
func Of[T runtime.Object](stores map[schema.GroupResource]*registry.Store,
	resource schema.GroupResource) Objects[T] {
	return objects[T]{stores, resource}
}

type objects[T runtime.Object] struct {
	stores   map[schema.GroupResource]*registry.Store
	resource schema.GroupResource
}

func (o objects[T]) store() (*registry.Store, error) {
	store, ok := o.stores[o.resource]
	if !ok {
		return nil, fmt.Errorf("find store of %s: it is not served", o.resource)
	}
	return store, nil
}

// typed converts an object that a store returned to its type.
func typed[T runtime.Object](object runtime.Object, err error) (T, error) {
	value, ok := object.(T)
	if err == nil && !ok {
		err = fmt.Errorf("read object: it is a %T", object)
	}
	return value, err
}

func (o objects[T]) get(ctx context.Context, name, version string) (T, error) {
	store, err := o.store()
	if err != nil {
		var none T
		return none, err
	}
	return typed[T](store.Get(o.about(ctx), name, &metav1.GetOptions{ResourceVersion: version}))
}

func (o objects[T]) Get(ctx context.Context, name string) (T, error) { return o.get(ctx, name, "") }

func (o objects[T]) Cached(ctx context.Context, name string) (T, error) {
	if object, err := o.get(ctx, name, "0"); err == nil {
		return object, nil
	}
	return o.get(ctx, name, "")
}

func (o objects[T]) Where(ctx context.Context, field, value string) (all []T, err error) {
	store, err := o.store()
	if err != nil {
		return nil, err
	}
	list, err := store.List(o.about(scoped(ctx)), &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, value)})
	if err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		entry, err := typed[T](object, nil)
		all = append(all, entry)
		return err
	})
	return all, err
}

func (o objects[T]) Create(ctx context.Context, object T) (T, error) {
	store, err := o.store()
	if err != nil {
		return object, err
	}
	return typed[T](store.Create(o.about(scoped(ctx)), object, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}))
}

func (o objects[T]) Update(ctx context.Context, object T) (T, error) {
	store, err := o.store()
	if err != nil {
		return object, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, err
	}
	updated, _, err := store.Update(o.about(scoped(ctx)), accessor.GetName(), rest.DefaultUpdatedObjectInfo(object), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return typed[T](updated, err)
}

func (o objects[T]) Delete(ctx context.Context, name string) error {
	store, err := o.store()
	if err != nil {
		return err
	}
	_, _, err = store.Delete(o.about(scoped(ctx)), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

// about adds request information for the resource to a context, because errors take the resource's
// name from the request information. Without it, the context of a page request would contain
// information about the page.
func (o objects[T]) about(ctx context.Context) context.Context {
	return request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: o.resource.Group, Resource: o.resource.Resource})
}

// scoped adds the empty namespace to a context that has no namespace. Stores require a namespace in
// the context, even for cluster-scoped objects.
func scoped(ctx context.Context) context.Context {
	if _, ok := request.NamespaceFrom(ctx); ok {
		return ctx
	}
	return request.WithNamespace(ctx, metav1.NamespaceNone)
}

// InNamespace returns a context for objects in a namespace.
func InNamespace(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}
