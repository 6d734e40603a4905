package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic/registry"
)

// StoreListerWatcher lists and watches a store in-process, for an informer or a reflector.
type StoreListerWatcher struct {
	// Find returns the store. It returns an error until the store exists.
	Find func() (*registry.Store, error)
}

// List returns the selected objects.
func (l StoreListerWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	store, internal, err := l.prepare(options)
	if err != nil {
		return nil, err
	}
	return store.List(context.Background(), internal)
}

// Watch watches the selected objects.
func (l StoreListerWatcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	store, internal, err := l.prepare(options)
	if err != nil {
		return nil, err
	}
	events, err := store.Watch(context.Background(), internal)
	if err != nil {
		return nil, err
	}
	// The store wraps objects that several watchers share, so this function unwraps them.
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if wrapped, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = wrapped.GetObject()
		}
		return event, true
	}), nil
}

func (l StoreListerWatcher) prepare(options metav1.ListOptions) (*registry.Store, *internalversion.ListOptions, error) {
	store, err := l.Find()
	if err != nil {
		return nil, nil, err
	}
	internal := &internalversion.ListOptions{}
	if err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, internal, nil); err != nil {
		return nil, nil, fmt.Errorf("read list options: %w", err)
	}
	return store, internal, nil
}
