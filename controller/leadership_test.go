package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// candidate is a master in an election.
type candidate struct {
	Leadership
	admitted, standby, broken atomic.Bool
	group                     *Group
}

func newCandidate(t *testing.T, client *fake.Clientset, identity string) *candidate {
	t.Helper()
	c := &candidate{}
	proxied := fake.NewClientset()
	proxied.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if c.broken.Load() {
			return true, nil, errors.New("network is down")
		}
		object, err := client.Invokes(action, nil)
		return true, object, err
	})
	c.Leadership = Leadership{Client: proxied, Identity: identity}
	c.group = c.Group("loops")
	return c
}

// wait waits in the background until the candidate leads the group.
func (c *candidate) wait(ctx context.Context) {
	go func() {
		c.admitted.Store(c.group.Wait(ctx, func() { c.standby.Store(true) }) == nil)
	}()
}

func TestGroupRunsOnOneMaster(t *testing.T) {
	client := fake.NewClientset()
	first, second := newCandidate(t, client, "first"), newCandidate(t, client, "second")
	component := componenttest.Run(t, first.Run)
	first.wait(t.Context())
	eventually.True(t, "first master leads", first.admitted.Load)
	componenttest.Run(t, second.Run)
	second.wait(t.Context())
	eventually.True(t, "second master is on standby", second.standby.Load)
	if first.standby.Load() || second.admitted.Load() {
		t.Error("the wrong master leads")
	}
	component.Stop()
	eventually.True(t, "second master leads", second.admitted.Load)
}

func TestMasterThatLosesLeaseEnds(t *testing.T) {
	master := newCandidate(t, fake.NewClientset(), "first")
	done := make(chan error, 1)
	go func() { done <- master.Run(t.Context(), func() {}) }()
	master.wait(t.Context())
	eventually.True(t, "the master leads", master.admitted.Load)
	master.broken.Store(true)
	if err := <-done; !errors.Is(err, ErrLeadershipLost) {
		t.Errorf("got %v", err)
	}
}

func TestMasterLeadsImmediatelyAfterRestart(t *testing.T) {
	client := fake.NewClientset()
	killed := newCandidate(t, client, "first")
	componenttest.Run(t, killed.Run)
	killed.wait(t.Context())
	eventually.True(t, "the master leads", killed.admitted.Load)
	killed.broken.Store(true) // the master stops like a killed process: it does not release the lease

	next := newCandidate(t, client, "first")
	componenttest.Run(t, next.Run)
	next.wait(t.Context())
	eventually.True(t, "the next process leads", next.admitted.Load)
	if next.standby.Load() {
		t.Error("the next process waited for its own lease")
	}
}
