// Package storetest provides registry stores with fixed objects, for unit tests of code that reads
// from apiserver.Deps.Stores.
package storetest

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"

	"github.com/slipway-platform/slipway/apiserver"
)

// New returns a store that contains the given objects. The store is namespaced if at least one
// object has a namespace. It supports Get and List without selectors, and panics on any other
// request.
func New[T apiserver.Object](resource schema.GroupResource, list runtime.Object, objects ...T) *registry.Store {
	content := map[string]runtime.Object{}
	namespaced := false
	for _, object := range objects {
		namespaced = namespaced || object.GetNamespace() != ""
		content[object.GetNamespace()+"/"+object.GetName()] = object
	}
	namespace := func(ctx context.Context) string {
		if !namespaced {
			return ""
		}
		return request.NamespaceValue(ctx)
	}
	return &registry.Store{
		NewFunc:                  func() runtime.Object { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) },
		NewListFunc:              func() runtime.Object { return list.DeepCopyObject() },
		DefaultQualifiedResource: resource,
		KeyRootFunc:              namespace,
		KeyFunc: func(ctx context.Context, name string) (string, error) {
			return namespace(ctx) + "/" + name, nil
		},
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field}
		},
		Storage: registry.DryRunnableStorage{Storage: &memory{content: content}},
	}
}

// memory is read-only storage in memory.
type memory struct {
	storage.Interface // nil, because other requests are not supported
	content           map[string]runtime.Object
}

// Get copies the object with the given key.
func (m *memory) Get(_ context.Context, key string, _ storage.GetOptions, into runtime.Object) error {
	object, ok := m.content[key]
	if !ok {
		return storage.NewKeyNotFoundError(key, 0)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	return nil
}

// GetList copies the objects in a namespace, or all objects for the empty namespace, sorted by key.
func (m *memory) GetList(_ context.Context, namespace string, _ storage.ListOptions, list runtime.Object) error {
	var keys []string
	for key := range m.content {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var objects []runtime.Object
	for _, key := range keys {
		objects = append(objects, m.content[key].DeepCopyObject())
	}
	return meta.SetList(list, objects)
}
