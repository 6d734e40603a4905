// Package store is how the OAuth server reads and writes API objects: within the process, so that no token and no code ever stands in a
// request, and thus in no log.
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

// Objects are the objects of one resource. Errors are those of the API (k8s.io/apimachinery/pkg/api/errors): not found, conflict, invalid.
type Objects[T runtime.Object] interface {
	// Get reads an object as it is stored now.
	Get(ctx context.Context, name string) (T, error)
	// Cached reads an object from memory, milliseconds old, and from the store when it is not there. It must not be changed.
	Cached(ctx context.Context, name string) (T, error)
	// Where gives the objects of which a field that the resource can be selected by has a value.
	Where(ctx context.Context, field, value string) ([]T, error)
	Create(ctx context.Context, object T) (T, error)
	// Update replaces an object, unless it was changed since it was read.
	Update(ctx context.Context, object T) (T, error)
	// Delete deletes an object; exactly one of several that try at once succeeds.
	Delete(ctx context.Context, name string) error
}

// Of gives the objects of a resource that the API server serves; stores may be filled later, but before the first use.
func Of[T runtime.Object](stores map[schema.GroupResource]*registry.Store, resource schema.GroupResource) Objects[T] {
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

// typed gives a result of a store its type.
func typed[T runtime.Object](object runtime.Object, err error) (T, error) {
	result, ok := object.(T)
	if err == nil && !ok {
		err = fmt.Errorf("read object: is a %T", object)
	}
	return result, err
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
		one, err := typed[T](object, nil)
		all = append(all, one)
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

// about says in a context what is asked for. Errors name the resource from there, and the context of a request for a page
// of the server would say nothing.
func (o objects[T]) about(ctx context.Context) context.Context {
	return request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: o.resource.Group, Resource: o.resource.Resource})
}

// scoped gives a context a namespace, as the requests have that stores are made for: none, for objects that live in none.
func scoped(ctx context.Context) context.Context {
	if _, ok := request.NamespaceFrom(ctx); ok {
		return ctx
	}
	return request.WithNamespace(ctx, metav1.NamespaceNone)
}

// InNamespace is a context for objects that live in a namespace.
func InNamespace(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}
