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

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/parttest"
)

// source is a store of ConfigMaps with its informer, which runs.
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

// record counts how often each key was reconciled.
type record struct {
	mu   sync.Mutex
	seen map[string]int
}

func (r *record) add(key Key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]int{}
	}
	r.seen[key.String()]++
	return r.seen[key.String()]
}

func (r *record) times(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[key]
}

func TestALoopReconcilesWhatIsThereAndWhatChanges(t *testing.T) {
	store, informer := source(t, "a")
	var seen record
	changed := func(old, new any) bool {
		return old.(*corev1.ConfigMap).Data["value"] != new.(*corev1.ConfigMap).Data["value"]
	}
	loop := Loop{Name: "test", Watches: []Watch{{Informer: informer, Changed: changed}}, Reconcile: func(_ context.Context, key Key) error {
		seen.add(key)
		return nil
	}}
	parttest.Run(t, Set{loop}.Run)
	eventually.True(t, "the first object is reconciled", func() bool { return seen.times("ns/a") == 1 })
	store.Modify(object("a", "")) // nothing that matters
	store.Add(object("b", ""))
	eventually.True(t, "the second object is reconciled", func() bool { return seen.times("ns/b") == 1 })
	if n := seen.times("ns/a"); n != 1 {
		t.Errorf("reconciled %d times after a change that does not matter", n)
	}
	store.Modify(object("a", "other"))
	eventually.True(t, "the change is reconciled", func() bool { return seen.times("ns/a") == 2 })
	store.Delete(object("b", ""))
	eventually.True(t, "the deletion is reconciled", func() bool { return seen.times("ns/b") == 2 })
}

func TestFailuresPanicsAndWaitsAreTriedAgain(t *testing.T) {
	_, informer := source(t, "error", "panic", "wait")
	var seen record
	loop := Loop{Name: "test", Watches: []Watch{{Informer: informer}}, Retry: time.Millisecond, Reconcile: func(_ context.Context, key Key) error {
		if seen.add(key) > 3 {
			return nil
		}
		switch key.Name {
		case "error":
			return errors.New("driver says no")
		case "panic":
			panic("a mistake")
		default:
			return After(time.Millisecond)
		}
	}}
	parttest.Run(t, Set{loop}.Run)
	for _, key := range []string{"ns/error", "ns/panic", "ns/wait"} {
		eventually.Equal(t, key+" is reconciled until it is well", func() int { return seen.times(key) }, 4)
	}
}

func TestLoopsThatExcludeEachOtherNeverShareAKey(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	_, informer := source(t, names...)
	var busy, done, clashes record
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
	parttest.Run(t, Set{
		{Name: "one", Watches: watches, Exclusion: &exclusion, Reconcile: work},
		{Name: "two", Watches: watches, Exclusion: &exclusion, Reconcile: work},
	}.Run)
	for _, name := range names {
		eventually.Equal(t, name+" is reconciled by both", func() int { return done.times("ns/" + name) }, 2)
		if n := clashes.times("ns/" + name); n != 0 {
			t.Errorf("%s was worked on by both at once", name)
		}
	}
}

func TestALoopThatHangsHoldsNoOtherAndEndsWithItsContext(t *testing.T) {
	_, informer := source(t, "a")
	var seen record
	watches := []Watch{{Informer: informer}}
	part := parttest.Run(t, Set{
		{Name: "hangs", Watches: watches, Workers: 1, Reconcile: func(ctx context.Context, _ Key) error { <-ctx.Done(); return ctx.Err() }},
		{Name: "works", Watches: watches, Reconcile: func(_ context.Context, key Key) error { seen.add(key); return nil }},
	}.Run)
	eventually.True(t, "the other loop works", func() bool { return seen.times("ns/a") == 1 })
	part.Stop()
}

func TestALoopWithoutAPartIsRefused(t *testing.T) {
	err := Set{{Name: "test"}}.Run(t.Context(), func() { t.Error("ready") })
	if err == nil {
		t.Error("a loop that watches nothing runs")
	}
}

func ExampleAfter() {
	wait, again := delay(fmt.Errorf("reconcile: %w", After(time.Minute)))
	fmt.Println(wait, again)
	// Output: 1m0s true
}
