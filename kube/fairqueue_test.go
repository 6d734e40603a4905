package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// exhausted returns a queue with a rate of 1 MiB per second whose burst is used up.
func exhausted(t *testing.T) (*fairQueue, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	q := newFairQueue(clock, large, 4*large)
	for range 4 {
		if err := q.wait(t.Context(), "project evil", large); err != nil {
			t.Fatal(err)
		}
	}
	return q, clock
}

// admitAll advances the clock until the queue is empty, and returns the tenants of the writes in
// the order of admission.
func admitAll(q *fairQueue, clock *clocktesting.FakeClock, tenants map[*turn]string) (order []string) {
	for len(q.waiting) > 0 {
		first := q.waiting[0]
		admitted, delay := q.take(first)
		if !admitted {
			clock.Step(delay)
			continue
		}
		order = append(order, tenants[first])
	}
	return order
}

func TestWritesOfTenantDoNotDelayOtherTenants(t *testing.T) {
	q, clock := exhausted(t)
	tenants := map[*turn]string{}
	for range 20 {
		tenants[q.join("evil", large)] = "evil"
	}
	for range 3 {
		tenants[q.join("shop", large)] = "shop"
	}
	start := clock.Now()
	order := fmt.Sprint(admitAll(q, clock, tenants)[:7])
	if order != "[evil shop evil shop evil shop evil]" {
		t.Errorf("the order is %s", order)
	}
	if got := clock.Since(start).Round(time.Second); got != 23*time.Second {
		t.Errorf("23 MiB take %s at 1 MiB per second", got)
	}
}

func TestTenantsGetSameNumberOfBytes(t *testing.T) {
	q, clock := exhausted(t)
	tenants := map[*turn]string{}
	for range 10 {
		tenants[q.join("large", large)] = "large"
	}
	for range 40 {
		tenants[q.join("small", large/4)] = "small"
	}
	bytes := map[string]int{}
	for _, tenant := range admitAll(q, clock, tenants)[:25] {
		bytes[tenant] += map[string]int{"large": large, "small": large / 4}[tenant]
	}
	if difference := bytes["large"] - bytes["small"]; difference < -large || difference > large {
		t.Errorf("the tenants got %v", bytes)
	}
}

func TestTenantsWithoutWritesAreRemoved(t *testing.T) {
	q, clock := exhausted(t)
	admitAll(q, clock, map[*turn]string{q.join("evil", large): ""})
	if len(q.ends) != 0 || q.position != 0 {
		t.Errorf("the empty queue contains %v, position %d", q.ends, q.position)
	}
}

func TestWaitingWritesContinueAfterOneEnds(t *testing.T) {
	q, clock := exhausted(t)
	ctx, cancel := context.WithCancel(t.Context())
	canceled, admitted := make(chan error), make(chan error)
	go func() { canceled <- q.wait(ctx, "evil", large) }()
	eventually.True(t, "the first write to wait", func() bool { return clock.Waiters() == 1 })
	go func() { admitted <- q.wait(t.Context(), "shop", large) }()
	eventually.True(t, "the second write to wait", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting) == 2
	})
	cancel()
	if err := <-canceled; !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose request ended: %v", err)
	}
	eventually.True(t, "the second write to become the first", clock.HasWaiters)
	clock.Step(time.Second)
	if err := <-admitted; err != nil {
		t.Error(err)
	}
}

func TestUrgentWriteIsAdmitted(t *testing.T) {
	q, clock := exhausted(t)
	evil := q.join("evil", large)
	q.join("evil", large)
	if q.try("shop", large/8) {
		t.Error("a write is admitted above the rate")
	}
	clock.Step(time.Second / 2)
	if !q.try("shop", large/8) {
		t.Error("a write fails although its tenant has no other write")
	}
	if q.try("shop", large/8) {
		t.Error("a second write is admitted before writes of other tenants")
	}
	clock.Step(time.Second)
	if admitted, _ := q.take(evil); !admitted {
		t.Error("the waiting write is not admitted")
	}
}
