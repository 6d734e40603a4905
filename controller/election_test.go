package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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
	broken atomic.Bool // true if its requests fail
}

func newLeader(client *fake.Clientset, identity string) *leader {
	l := &leader{}
	proxied := fake.NewClientset()
	proxied.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if l.broken.Load() {
			return true, nil, errors.New("network is down")
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
