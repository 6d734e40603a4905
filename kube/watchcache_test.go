package kube

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
)

// startEtcd starts a real member and returns the path of its Unix socket.
func startEtcd(t *testing.T) string {
	pair, dir := certtest.New(t).Issue(t, "etcd"), t.TempDir()
	socket := filepath.Join(dir, "run", "etcd.sock")
	componenttest.Run(t, (&Etcd{
		Dir: filepath.Join(dir, "etcd"), Socket: socket, ClientAddress: "127.0.0.1:0", PeerAddress: "127.0.0.1:0",
		CertFile: pair.CertFile, KeyFile: pair.KeyFile, CAFile: pair.CertFile,
	}).Run)
	return socket
}

// configMaps is a ConfigMap store in a real etcd.
type configMaps struct {
	*testing.T
	*lazilyCached
}

// newConfigMaps returns a store whose cache has not been started.
func newConfigMaps(t *testing.T) configMaps {
	json, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("no serializer for JSON")
	}
	codec := scheme.Codecs.CodecForVersions(json.Serializer, json.Serializer, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
	options := serveroptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/kubernetes.io", codec))
	options.StorageConfig.Transport.ServerList = []string{"unix://" + startEtcd(t)}
	options.StorageConfig.CompactionInterval = 0
	connection, err := newEtcdConnection(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.close)
	store, destroy, err := connection.construct(options.StorageConfig.ForResource(schema.GroupResource{Resource: "configmaps"}), "/configmaps",
		func(object runtime.Object) (string, error) { return storage.NamespaceKeyFunc("/configmaps/", object) },
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} },
		storage.DefaultNamespaceScopedAttr, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return configMaps{t, store.(*lazilyCached)}
}

// create creates a ConfigMap and returns its resource version.
func (c configMaps) create(name string) string {
	c.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
	if err := c.Create(c.Context(), "/configmaps/shop/"+name, object, object, 0); err != nil {
		c.Fatal(err)
	}
	return object.ResourceVersion
}

// list returns the number of ConfigMaps in a list at any resource version.
func (c configMaps) list() int {
	c.Helper()
	list := &corev1.ConfigMapList{}
	options := storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything}
	if err := c.GetList(c.Context(), "/configmaps/", options, list); err != nil {
		c.Fatal(err)
	}
	return len(list.Items)
}

// follow watches all ConfigMaps from the given resource version.
func (c configMaps) follow(version string) watch.Interface {
	c.Helper()
	predicate := storage.Everything
	predicate.AllowWatchBookmarks = true
	watcher, err := c.Watch(c.Context(), "/configmaps/", storage.ListOptions{ResourceVersion: version, Recursive: true, Predicate: predicate})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(watcher.Stop)
	return watcher
}

// expect waits until the watcher reports that the ConfigMap has been created.
func (c configMaps) expect(watcher watch.Interface, name string) {
	c.Helper()
	select {
	case event := <-watcher.ResultChan():
		if cached, ok := event.Object.(runtime.CacheableObject); ok {
			event.Object = cached.GetObject()
		}
		if object, ok := event.Object.(*corev1.ConfigMap); !ok || event.Type != watch.Added || object.Name != name {
			c.Fatalf("event is %s of %v, want the creation of %s", event.Type, event.Object, name)
		}
	case <-c.Context().Done():
		c.Fatalf("no event of %s", name)
	}
}

// cached reports whether the cache is running.
func (c configMaps) cached() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.cache != nil
}

func TestThirdWatchStartsCache(t *testing.T) {
	store := newConfigMaps(t)
	first := store.create("first")
	one, two := store.follow(first), store.follow(first)
	second := store.create("second")
	store.expect(one, "second")
	store.expect(two, "second")
	if store.cached() {
		t.Error("two watches start the cache")
	}
	current := store.follow(second)
	if !store.cached() {
		t.Error("the third watch does not start the cache")
	}
	before := store.follow(first) // this watch is older than the cache
	store.expect(before, "second")
	store.create("third")
	for _, watcher := range []watch.Interface{one, two, current, before} {
		store.expect(watcher, "third")
	}
	if count := store.list(); count != 3 {
		t.Errorf("list has %d objects, want 3", count)
	}
}

func TestEndedWatchDoesNotCount(t *testing.T) {
	store := newConfigMaps(t)
	version := store.create("first")
	for range 2 * maxUncachedWatches {
		watcher := store.follow(version)
		watcher.Stop()
		watcher.Stop()
	}
	store.follow(version)
	store.follow(version)
	if store.cached() {
		t.Error("ended watches count, and start the cache")
	}
}

func TestFailedWatchDoesNotCount(t *testing.T) {
	store := newConfigMaps(t)
	for range 2 * maxUncachedWatches {
		if _, err := store.Watch(t.Context(), "/configmaps/", storage.ListOptions{ResourceVersion: "latest", Recursive: true, Predicate: storage.Everything}); err == nil {
			t.Fatal("a watch with an invalid resource version has no error")
		}
	}
	store.follow("0")
	if store.cached() {
		t.Error("failed watches count, and start the cache")
	}
}

func TestLongListStartsCache(t *testing.T) {
	store := newConfigMaps(t)
	for i := range maxUncachedObjects {
		store.create(fmt.Sprint("object-", i))
		if i == maxUncachedObjects-2 {
			store.list()
		}
	}
	if store.cached() {
		t.Fatal("a shorter list starts the cache")
	}
	if count := store.list(); count != maxUncachedObjects || !store.cached() {
		t.Fatalf("list has %d objects; the cache runs: %t", count, store.cached())
	}
	if err := store.cache.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if count := store.list(); count != maxUncachedObjects || store.current() != storage.Interface(store.cache) {
		t.Errorf("list has %d objects; the cache serves it: %t", count, store.current() == storage.Interface(store.cache))
	}
}

func TestFrequentListsStartCache(t *testing.T) {
	store := newConfigMaps(t)
	for range maxUncachedLists {
		if store.list(); store.cached() {
			t.Fatal("rare lists start the cache")
		}
	}
	if store.list(); !store.cached() {
		t.Error("frequent lists do not start the cache")
	}
}

func TestOldAndLatestListsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lazilyCached{}
		latest, any := storage.ListOptions{}, storage.ListOptions{ResourceVersion: "0"}
		for range 2 * maxUncachedLists {
			if store.listsOften(latest) {
				t.Fatal("lists of the latest state count")
			}
		}
		for range 3 {
			for range maxUncachedLists {
				if store.listsOften(any) {
					t.Fatal("rare lists start the cache")
				}
			}
			<-time.After(listPeriod + time.Second)
		}
	})
}

func TestClosedStoreStartsNoCache(t *testing.T) {
	store := newConfigMaps(t)
	store.follow("0")
	store.follow("0")
	store.close()
	if _, err := store.Watch(context.Background(), "/configmaps/", storage.ListOptions{ResourceVersion: "0", Recursive: true, Predicate: storage.Everything}); err == nil {
		t.Error("the third watch of a closed store has no error")
	}
}
