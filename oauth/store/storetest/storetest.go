// Package storetest provides a fake of package store. The fake stores API objects in memory, and
// returns API errors for missing, existing and changed objects.
package storetest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/oauth/store"
)

// Objects stores objects in memory.
type Objects[T runtime.Object] struct {
	// Resource is the resource that error messages contain.
	Resource schema.GroupResource
	// Field returns the value of an object's field. It is required only for Where.
	Field func(object T, field string) string
	// Fail, if set, is called before each change. If it returns an error, the change fails with
	// that error.
	Fail func(verb, name string) error

	mutex   sync.Mutex
	objects map[string]T
	version int
}

var _ store.Objects[runtime.Object] = (*Objects[runtime.Object])(nil)

// New returns a store that contains the given objects.
func New[T runtime.Object](resource schema.GroupResource, objects ...T) *Objects[T] {
	o := &Objects[T]{Resource: resource, objects: map[string]T{}}
	for _, object := range objects {
		if _, err := o.Create(context.Background(), object); err != nil {
			panic(err) // a test passed two objects with the same name
		}
	}
	return o
}

// All returns all objects.
func (o *Objects[T]) All() (all []T) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, object := range o.objects {
		all = append(all, object.DeepCopyObject().(T))
	}
	return all
}

// Get reads an object.
func (o *Objects[T]) Get(_ context.Context, name string) (T, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	object, ok := o.objects[name]
	if !ok {
		return object, apierrors.NewNotFound(o.Resource, name)
	}
	return object.DeepCopyObject().(T), nil
}

// Cached reads an object.
func (o *Objects[T]) Cached(ctx context.Context, name string) (T, error) { return o.Get(ctx, name) }

// Where returns the objects whose field has the given value.
func (o *Objects[T]) Where(_ context.Context, field, value string) ([]T, error) {
	return slices.DeleteFunc(o.All(), func(object T) bool { return o.Field(object, field) != value }), nil
}

// Create adds an object and sets its UID and creation time.
func (o *Objects[T]) Create(_ context.Context, object T) (T, error) {
	return o.write("create", object, func(accessor metav1.Object, _ T, exists bool) error {
		if exists {
			return apierrors.NewAlreadyExists(o.Resource, accessor.GetName())
		}
		if accessor.GetUID() == "" {
			accessor.SetUID(types.UID("uid-" + strconv.Itoa(o.version)))
		}
		if accessor.GetCreationTimestamp().Time.IsZero() {
			accessor.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
		}
		return nil
	})
}

// Update replaces an object. It returns a conflict if the resource version has changed.
func (o *Objects[T]) Update(_ context.Context, object T) (T, error) {
	return o.write("update", object, func(accessor metav1.Object, old T, exists bool) error {
		if !exists {
			return apierrors.NewNotFound(o.Resource, accessor.GetName())
		}
		before, err := meta.Accessor(old)
		if err == nil && before.GetResourceVersion() != accessor.GetResourceVersion() {
			return apierrors.NewConflict(o.Resource, accessor.GetName(), nil)
		}
		return err
	})
}

func (o *Objects[T]) write(verb string, object T,
	check func(accessor metav1.Object, old T, exists bool) error) (T, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	existing := object.DeepCopyObject().(T)
	accessor, err := meta.Accessor(existing)
	if err != nil {
		return object, err
	}
	if o.Fail != nil {
		if err := o.Fail(verb, accessor.GetName()); err != nil {
			return object, err
		}
	}
	old, exists := o.objects[accessor.GetName()]
	o.version++
	if err := check(accessor, old, exists); err != nil {
		return object, err
	}
	accessor.SetResourceVersion(strconv.Itoa(o.version))
	o.objects[accessor.GetName()] = existing
	return existing.DeepCopyObject().(T), nil
}

// Delete removes an object.
func (o *Objects[T]) Delete(_ context.Context, name string) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, ok := o.objects[name]; !ok {
		return apierrors.NewNotFound(o.Resource, name)
	}
	if o.Fail != nil {
		if err := o.Fail("delete", name); err != nil {
			return err
		}
	}
	delete(o.objects, name)
	return nil
}
