package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
)

const (
	// etcdKeepAliveInterval and etcdKeepAliveTimeout control how quickly an unresponsive etcd is
	// detected. They have upstream's values.
	etcdKeepAliveInterval, etcdKeepAliveTimeout = 30 * time.Second, 10 * time.Second
	etcdDialTimeout                             = 20 * time.Second
)

// etcdConnection is the etcd connection that the stores of all resources share. Upstream opens one
// connection for each resource (https://github.com/kubernetes/kubernetes/issues/111476). Each
// connection has ten goroutines, and buffers in the API server and in etcd.
type etcdConnection struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	stop      func()
	// uncached holds the resources without a watch cache. all is true if no resource has a watch
	// cache.
	uncached map[schema.GroupResource]int
	all      bool
}

// newEtcdConnection returns the connection for the storage that options configures. The storage has
// one endpoint.
func newEtcdConnection(options *serveroptions.EtcdOptions) (*etcdConnection, error) {
	config := options.StorageConfig
	uncached, err := serveroptions.ParseWatchCacheSizes(options.WatchCacheSizes)
	if err != nil {
		return nil, fmt.Errorf("parse watch cache sizes: %w", err)
	}
	client, err := kubernetes.New(clientv3.Config{
		Endpoints: config.Transport.ServerList, DialTimeout: etcdDialTimeout, Logger: zap.NewNop(),
		DialKeepAliveTime: etcdKeepAliveInterval, DialKeepAliveTimeout: etcdKeepAliveTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	feature.DefaultFeatureSupportChecker.CheckClient(client.Ctx(), client, storage.RequestWatchProgress)
	connection := &etcdConnection{
		client: client, stop: func() {}, uncached: uncached, all: !options.EnableWatchCache,
	}
	if config.CompactionInterval > 0 {
		compactor := etcd3.StartCompactorPerEndpoint(client.Client, config.CompactionInterval)
		connection.compactor, connection.stop = compactor, compactor.Stop
	}
	return connection, nil
}

// close closes the connection. The stores cannot be used after that.
func (c *etcdConnection) close() {
	c.stop()
	_ = c.client.Close() // the API server is shutting down
}

// stores returns upstream's storage options, but with stores that use this connection and convert
// the pacer's errors to API errors.
func (c *etcdConnection) stores(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return storeGetter{getter, c}
}

// storeGetter replaces upstream's store constructors.
type storeGetter struct {
	generic.RESTOptionsGetter
	connection *etcdConnection
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g storeGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	upstream := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		construct := upstream
		if g.connection.serves(config) {
			construct = g.connection.construct
		}
		store, destroy, err := construct(config, prefix, keyFunc, newFunc, newListFunc, attributes, triggers, indexers)
		if err != nil {
			return nil, nil, err
		}
		return pacedStorage{store}, destroy, nil
	}
	return options, nil
}

// serves reports whether a store can use this connection. A store with its own servers
// (--etcd-servers-overrides) uses upstream's constructor.
func (c *etcdConnection) serves(config *storagebackend.ConfigForResource) bool {
	return slices.Equal(config.Transport.ServerList, c.client.Endpoints())
}

// delegatedCache is a watch cache whose delegator sends requests either to the cache or to the
// cache's store.
type delegatedCache struct {
	*cacher.CacheDelegator
	cache *cacher.Cacher
}

// Wait implements watchCache.
func (c delegatedCache) Wait(ctx context.Context) error { return c.cache.Wait(ctx) }

// Ready implements watchCache.
func (c delegatedCache) Ready() bool { return c.cache.Ready() }

// LastSyncResourceVersion implements watchCache.
func (c delegatedCache) LastSyncResourceVersion() (uint64, error) {
	return c.cache.LastSyncResourceVersion()
}

// construct implements generic.StorageDecorator. It creates a resource's store. If the resource has
// a watch cache, the store starts the cache on demand.
func (c *etcdConnection) construct(config *storagebackend.ConfigForResource, prefix string, keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	store, destroyStore, err := c.store(c.client.Watcher, config, prefix, newFunc, newListFunc)
	if err != nil {
		return nil, nil, err
	}
	if size, ok := c.uncached[config.GroupResource]; c.all || ok && size <= 0 {
		return store, destroyStore, nil
	}
	lazily := &lazilyCached{Interface: store, newCache: func() (watchCache, func(), error) {
		watcher := clientv3.NewWatcher(c.client.Client)
		store, destroyStore, err := c.store(watcher, config, prefix, newFunc, newListFunc)
		if err != nil {
			_ = watcher.Close()
			return nil, nil, err
		}
		destroy := func() {
			destroyStore()
			_ = watcher.Close() // closing the watcher also ends its streams
		}
		cache, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage: store, Versioner: storage.APIObjectVersioner{}, GroupResource: config.GroupResource, EventsHistoryWindow: config.EventsHistoryWindow,
			ResourcePrefix: prefix, KeyFunc: keyFunc, NewFunc: newFunc, NewListFunc: newListFunc, GetAttrsFunc: attributes,
			IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
		})
		if err != nil {
			destroy()
			return nil, nil, fmt.Errorf("create watch cache of %s: %w", config.GroupResource, err)
		}
		delegator := cacher.NewCacheDelegator(cache, store)
		return delegatedCache{delegator, cache}, func() {
			delegator.Stop()
			cache.Stop()
			destroy()
		}, nil
	}}
	return lazily, sync.OnceFunc(func() {
		lazily.close()
		destroyStore()
	}), nil
}

// store creates a resource's store without a cache. The store behind a cache has its own watcher,
// because etcd sends progress notifications to all watches of a watcher.
func (c *etcdConnection) store(watcher clientv3.Watcher, config *storagebackend.ConfigForResource, prefix string, newFunc, newListFunc func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	client, versioner := c.clientOfStore(watcher), storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	deletesMalformed := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if deletesMalformed {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	store, err := etcd3.New(client, c.compactor, config.Codec, newFunc, newListFunc, config.Prefix, prefix, config.GroupResource, transformer,
		config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("create store of %s: %w", config.GroupResource, err)
	}
	destroy := sync.OnceFunc(store.Close)
	if deletesMalformed {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource), destroy, nil
	}
	return store, destroy, nil
}

// clientOfStore returns a client that uses the shared connection and the watcher.
func (c *etcdConnection) clientOfStore(watcher clientv3.Watcher) *kubernetes.Client {
	client := &kubernetes.Client{Client: clientv3.NewCtxClient(c.client.Ctx())}
	client.KV, client.Lease, client.Maintenance, client.Watcher = c.client.KV, c.client.Lease, c.client.Maintenance, watcher
	client.Kubernetes = client
	return client
}
