package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// leader is an instance in an election.
type leader struct {
	Election
	terms  atomic.Int32
	leads  atomic.Bool
	broken atomic.Bool // makes the instance's requests fail
	// clock is how far the instance's clock is ahead of the real time. renewals counts the updates
	// of the Lease.
	clock    time.Duration
	renewals atomic.Int32
}

func newLeader(client *fake.Clientset, identity string) *leader {
	l := &leader{}
	proxied := fake.NewClientset()
	proxied.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if l.broken.Load() {
			return true, nil, errors.New("network is down")
		}
		if update, ok := action.(clienttesting.UpdateAction); ok {
			l.renewals.Add(1)
			spec := &update.GetObject().(*coordinationv1.Lease).Spec
			spec.RenewTime, spec.AcquireTime = l.shift(spec.RenewTime), l.shift(spec.AcquireTime)
		}
		object, err := client.Invokes(action, nil)
		return true, object, err
	})
	l.Election = Election{Client: proxied, Namespace: "ns", Lease: "csi", Identity: identity, Duration: 2 * time.Second, Lead: func(ctx context.Context) error {
		l.terms.Add(1)
		l.leads.Store(true)
		defer l.leads.Store(false)
		<-ctx.Done()
		return nil
	}}
	return l
}

func (l *leader) shift(t *metav1.MicroTime) *metav1.MicroTime {
	if t == nil {
		return nil
	}
	return &metav1.MicroTime{Time: t.Add(l.clock)}
}

func TestLeaderWithOtherClockIsReplacedOnlyWhenItIsLost(t *testing.T) {
	for _, clock := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(clock.String(), func(t *testing.T) {
			client := fake.NewClientset()
			first, second := newLeader(client, "first"), newLeader(client, "second")
			first.clock = clock
			componenttest.Run(t, first.Run)
			eventually.True(t, "first instance leads", first.leads.Load)
			componenttest.Run(t, second.Run)
			// The leader renews the Lease four times per Duration.
			eventually.True(t, "first instance renews the lease", func() bool { return first.renewals.Load() > 12 })
			if first.terms.Load() != 1 || second.terms.Load() != 0 {
				t.Errorf("terms are %d and %d", first.terms.Load(), second.terms.Load())
			}
			first.broken.Store(true)
			eventually.True(t, "second instance leads", second.leads.Load)
		})
	}
}

func TestLostLeaseEndsLeadershipOnly(t *testing.T) {
	client := fake.NewClientset()
	first, second := newLeader(client, "first"), newLeader(client, "second")
	component := componenttest.Run(t, first.Run)
	eventually.True(t, "first instance leads", first.leads.Load)
	componenttest.Run(t, second.Run)

	first.broken.Store(true)
	eventually.True(t, "first instance stops leading", func() bool { return !first.leads.Load() })
	eventually.True(t, "second instance leads", second.leads.Load)

	first.broken.Store(false)
	second.broken.Store(true)
	eventually.True(t, "first instance leads again", first.leads.Load)
	if n := first.terms.Load(); n != 2 {
		t.Errorf("the first instance was the leader %d times, want 2", n)
	}

	component.Stop()
	lease, err := client.CoordinationV1().Leases("ns").Get(t.Context(), "csi", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder == "first" {
		t.Error("the lease was not released")
	}
}

func TestLeadErrorEndsElection(t *testing.T) {
	leadErr := errors.New("no such driver")
	election := Election{Client: fake.NewClientset(), Namespace: "ns", Lease: "csi", Identity: "one", Lead: func(context.Context) error { return leadErr }}
	if err := election.Run(t.Context(), func() {}); !errors.Is(err, leadErr) {
		t.Errorf("got %v", err)
	}
}
