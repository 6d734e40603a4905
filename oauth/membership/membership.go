// Package membership caches users' groups.
package membership

import (
	"context"
	"errors"
	"fmt"

	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apiserver"
)

// byUser is the name of the index of groups by user.
const byUser = "user"

// Groups is an informer for groups.
type Groups struct {
	informer cache.SharedIndexInformer
}

// New returns an empty cache, which Run fills. find returns the group store, or false if the store
// does not exist yet.
func New(find func() (*registry.Store, bool)) (*Groups, error) {
	source := apiserver.StoreListerWatcher{Find: func() (*registry.Store, error) {
		if store, ok := find(); ok {
			return store, nil
		}
		return nil, errors.New("find group store: it is not served")
	}}
	informer := cache.NewSharedIndexInformer(source, &userv1.Group{}, 0, cache.Indexers{})
	err := informer.AddIndexers(cache.Indexers{byUser: func(object any) ([]string, error) { return object.(*userv1.Group).Users, nil }})
	if err != nil {
		return nil, fmt.Errorf("index groups: %w", err)
	}
	return &Groups{informer}, nil
}

// Run runs the informer until ctx is done.
func (g *Groups) Run(ctx context.Context) { g.informer.RunWithContext(ctx) }

// WaitReady waits until the cache is synced.
func (g *Groups) WaitReady(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), g.informer.HasSynced) {
		return errors.New("read groups: stopped before the cache was filled")
	}
	return nil
}

// Of returns the names of a user's groups.
func (g *Groups) Of(user string) []string {
	groups, err := g.informer.GetIndexer().ByIndex(byUser, user)
	if err != nil {
		return nil // not possible, because the index exists
	}
	names := make([]string, 0, len(groups)+1)
	for _, object := range groups {
		names = append(names, object.(*userv1.Group).Name)
	}
	return names
}
