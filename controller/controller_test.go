package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// source returns a ConfigMap store and a running informer for it.
func source(t *testing.T, names ...string) (*cachetest.FakeControllerSource, cache.SharedIndexInformer) {
	t.Helper()
	store := cachetest.NewFakeControllerSource()
	for _, name := range names {
		store.Add(object(name, ""))
	}
	informer := cache.NewSharedIndexInformer(store, &corev1.ConfigMap{}, 0, cache.Indexers{})
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return store, informer
}

func object(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"value": value}}
}

// counter counts the Reconcile calls for each key.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (r *counter) add(key Key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[key.String()]++
	return r.counts[key.String()]
}

func (r *counter) times(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[key]
}

func TestLoopReconcilesObjectsAndChanges(t *testing.T) {
	store, informer := source(t, "a")
	var calls counter
	changed := func(old, new any) bool {
		return old.(*corev1.ConfigMap).Data["value"] != new.(*corev1.ConfigMap).Data["value"]
	}
	controller := Controller{Name: "test", Watches: []Watch{{Informer: informer, Changed: changed}}, Reconcile: func(_ context.Context, key Key) error {
		calls.add(key)
		return nil
	}}
	componenttest.Run(t, Manager{controller}.Run)
	eventually.True(t, "first object is reconciled", func() bool { return calls.times("ns/a") == 1 })
	store.Modify(object("a", "")) // this change is not relevant
	store.Add(object("b", ""))
	eventually.True(t, "second object is reconciled", func() bool { return calls.times("ns/b") == 1 })
	if n := calls.times("ns/a"); n != 1 {
		t.Errorf("reconciled %d times after an irrelevant change", n)
	}
	store.Modify(object("a", "other"))
	eventually.True(t, "change is reconciled", func() bool { return calls.times("ns/a") == 2 })
	store.Delete(object("b", ""))
	eventually.True(t, "deletion is reconciled", func() bool { return calls.times("ns/b") == 2 })
}

func TestErrorsPanicsAndRequeuesAreRetried(t *testing.T) {
	_, informer := source(t, "error", "panic", "wait")
	var calls counter
	controller := Controller{Name: "test", Watches: []Watch{{Informer: informer}}, MinBackoff: time.Millisecond, Reconcile: func(_ context.Context, key Key) error {
		if calls.add(key) > 3 {
			return nil
		}
		switch key.Name {
		case "error":
			return errors.New("driver failed")
		case "panic":
			panic("a mistake")
		default:
			return RequeueAfter(time.Millisecond)
		}
	}}
	componenttest.Run(t, Manager{controller}.Run)
	for _, key := range []string{"ns/error", "ns/panic", "ns/wait"} {
		eventually.Equal(t, key+" is reconciled until it succeeds", func() int { return calls.times(key) }, 4)
	}
}

func TestExclusion(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	_, informer := source(t, names...)
	var busy, done, clashes counter
	var exclusion Exclusion
	work := func(_ context.Context, key Key) error {
		if busy.add(key)%2 == 0 {
			clashes.add(key)
		}
		defer busy.add(key)
		done.add(key)
		return nil
	}
	watches := []Watch{{Informer: informer}}
	componenttest.Run(t, Manager{
		{Name: "one", Watches: watches, Exclusion: &exclusion, Reconcile: work},
		{Name: "two", Watches: watches, Exclusion: &exclusion, Reconcile: work},
	}.Run)
	for _, name := range names {
		eventually.Equal(t, name+" is reconciled by both controllers", func() int { return done.times("ns/" + name) }, 2)
		if n := clashes.times("ns/" + name); n != 0 {
			t.Errorf("%s was reconciled by both controllers at the same time", name)
		}
	}
}

func TestHungLoopDoesNotBlockOthers(t *testing.T) {
	_, informer := source(t, "a")
	var calls counter
	watches := []Watch{{Informer: informer}}
	component := componenttest.Run(t, Manager{
		{Name: "hangs", Watches: watches, Workers: 1, Reconcile: func(ctx context.Context, _ Key) error { <-ctx.Done(); return ctx.Err() }},
		{Name: "works", Watches: watches, Reconcile: func(_ context.Context, key Key) error { calls.add(key); return nil }},
	}.Run)
	eventually.True(t, "the other controller reconciles", func() bool { return calls.times("ns/a") == 1 })
	component.Stop()
}

func TestInvalidLoop(t *testing.T) {
	err := Manager{{Name: "test"}}.Run(t.Context(), func() { t.Error("ready") })
	if err == nil {
		t.Error("Run accepted a controller without a watch")
	}
}

func ExampleAfter() {
	wait, ok := requeueDelay(fmt.Errorf("reconcile: %w", RequeueAfter(time.Minute)))
	fmt.Println(wait, ok)
	// Output: 1m0s true
}
