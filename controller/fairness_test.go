package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestNamespacesTakeTurns(t *testing.T) {
	var queue turns
	for _, key := range []Key{{Namespace: "a", Name: "1"}, {Namespace: "a", Name: "2"}, {Namespace: "a", Name: "3"}, {Namespace: "b", Name: "1"}, {Name: "node"}} {
		queue.Push(key)
	}
	var got []string
	for queue.Len() > 0 {
		got = append(got, queue.Pop().String())
		if len(got) == 2 {
			queue.Push(Key{Namespace: "b", Name: "2"})
		}
	}
	if order := strings.Join(got, " "); order != "a/1 b/1 node a/2 b/2 a/3" {
		t.Errorf("the order is %s", order)
	}
}

func TestNamespaceLeavesWorkersToOthers(t *testing.T) {
	const limit, count = 2, 20
	store, informer := source(t)
	for i := range count {
		store.Add(object(fmt.Sprint("slow", i), ""))
	}
	var calls, busy counter
	wait := make(chan struct{})
	componenttest.Run(t, Manager{{
		Name: "test", Watches: []Watch{{Informer: informer}}, Workers: limit + 1, NamespaceWorkers: limit,
		Reconcile: func(ctx context.Context, key Key) error {
			if calls.add(key); key.Namespace == "ns" {
				busy.add(Key{Name: "slow"})
				select {
				case <-wait:
				case <-ctx.Done():
				}
			}
			return nil
		},
	}}.Run)
	eventually.Equal(t, "reconciles of slow keys", func() int { return busy.times("slow") }, limit)
	for i := range 2 * count {
		name := fmt.Sprint("quick", i)
		store.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name}})
		store.Modify(object("slow0", name)) // enqueue a key that is already waiting
	}
	eventually.Equal(t, "last key of the other namespace", func() int { return calls.times(fmt.Sprint("other/quick", 2*count-1)) }, 1)
	if n := busy.times("slow"); n != limit {
		t.Errorf("%d keys of a namespace are reconciled at the same time, want %d", n, limit)
	}
	close(wait)
	for i := range count {
		key := fmt.Sprint("ns/slow", i)
		eventually.True(t, key+" is reconciled", func() bool { return calls.times(key) > 0 })
	}
}
