// Package membership caches the groups of users.
package membership

import (
	"context"
	"errors"
	"fmt"

	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/client-go/tools/cache"
)

// byUser indexes groups by their users.
const byUser = "user"

// Groups is an informer for groups.
type Groups struct {
	informer cache.SharedIndexInformer
}

// New returns an empty cache, which Run fills. find returns the store of groups when it exists.
func New(find func() (*registry.Store, bool)) (*Groups, error) {
	informer := cache.NewSharedIndexInformer(&lister{find}, &userv1.Group{}, 0, cache.Indexers{})
	err := informer.AddIndexers(cache.Indexers{byUser: func(object any) ([]string, error) { return object.(*userv1.Group).Users, nil }})
	if err != nil {
		return nil, fmt.Errorf("index groups: %w", err)
	}
	return &Groups{informer}, nil
}

// Run runs the informer until ctx ends.
func (g *Groups) Run(ctx context.Context) { g.informer.RunWithContext(ctx) }

// WaitReady waits until the cache is complete.
func (g *Groups) WaitReady(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), g.informer.HasSynced) {
		return errors.New("read groups: stopped before all were read")
	}
	return nil
}

// Of returns the groups of a user.
func (g *Groups) Of(user string) []string {
	found, err := g.informer.GetIndexer().ByIndex(byUser, user)
	if err != nil {
		return nil // there is no other index
	}
	names := make([]string, 0, len(found)+1)
	for _, object := range found {
		names = append(names, object.(*userv1.Group).Name)
	}
	return names
}

// lister lists and watches a store within the process.
type lister struct {
	find func() (*registry.Store, bool)
}

func (l *lister) store() (*registry.Store, error) {
	store, ok := l.find()
	if !ok {
		return nil, errors.New("find store of groups: it is not served")
	}
	return store, nil
}

// List returns all objects.
func (l *lister) List(options metav1.ListOptions) (runtime.Object, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	internal, err := internalOptions(options)
	if err != nil {
		return nil, err
	}
	return store.List(context.Background(), internal)
}

// Watch returns a watch.
func (l *lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	store, err := l.store()
	if err != nil {
		return nil, err
	}
	internal, err := internalOptions(options)
	if err != nil {
		return nil, err
	}
	events, err := store.Watch(context.Background(), internal)
	if err != nil {
		return nil, err
	}
	// The store wraps objects that several watchers share.
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if wrapped, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = wrapped.GetObject()
		}
		return event, true
	}), nil
}

func internalOptions(options metav1.ListOptions) (*internalversion.ListOptions, error) {
	internal := &internalversion.ListOptions{}
	if err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, internal, nil); err != nil {
		return nil, fmt.Errorf("read options of a list: %w", err)
	}
	return internal, nil
}
