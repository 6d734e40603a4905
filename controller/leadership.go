package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Timing of leader elections between masters. If the leader is killed, another master becomes the
// leader within nine seconds: the lease expires, and the other master's next attempt to acquire the
// lease succeeds.
const (
	leadershipDuration = 7 * time.Second
	leadershipRetry    = time.Second
)

// Leadership is the component that elects the master that runs a group of components, with one
// Lease per group. A group's components wait in Group.Wait, so they start only on the group's
// leader. A process that loses the leadership of a group exits, because not all components can be
// stopped and restarted.
type Leadership struct {
	// Client reads and writes the Leases. It must not share a rate limiter with other clients,
	// which could delay renewals.
	Client kubernetes.Interface
	// Identity is the name of this master. It stays the same after a restart, so that the next
	// process becomes the leader immediately.
	Identity string

	groups []*Group
}

// Group is a group of components that run on only one master at a time.
type Group struct {
	lease         string
	lead, standby chan struct{}
}

// Group returns a group whose Lease is in the kube-system namespace.
func (l *Leadership) Group(lease string) *Group {
	for _, g := range l.groups {
		if g.lease == lease {
			return g
		}
	}
	g := &Group{lease: lease, lead: make(chan struct{}), standby: make(chan struct{})}
	l.groups = append(l.groups, g)
	return g
}

// Wait blocks until this process leads the group. It calls standby if another process leads the
// group.
func (g *Group) Wait(ctx context.Context, standby func()) error {
	select {
	case <-g.lead:
		return nil
	case <-g.standby:
		standby()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-g.lead:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Name returns the component's name.
func (*Leadership) Name() string { return "leadership" }

// ErrLeadershipLost is returned by Run when this process has lost the leadership of a group. The
// process then exits.
var ErrLeadershipLost = errors.New("this master has lost a lease, because the API server or etcd did not respond in time; another master continues its work")

// Run takes part in the elections until ctx is done. The components in the groups start after Run
// and stop before it, so there are never two leaders at the same time.
func (l *Leadership) Run(ctx context.Context, ready func()) error {
	ready()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var elections sync.WaitGroup
	for _, g := range l.groups {
		elections.Go(func() {
			if err := l.elect(ctx, g); err != nil {
				cancel(err)
			}
		})
	}
	elections.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (l *Leadership) elect(ctx context.Context, g *Group) error {
	standBy := sync.OnceFunc(func() { close(g.standby) })
	election := &Election{
		Client: l.Client, Namespace: metav1.NamespaceSystem, Lease: g.lease, Identity: l.Identity,
		Duration: leadershipDuration, Retry: leadershipRetry,
		Observe: func(leader string) {
			if leader != "" && leader != l.Identity {
				standBy()
			}
		},
		Lead: func(leading context.Context) error {
			close(g.lead)
			<-leading.Done()
			if ctx.Err() == nil {
				return ErrLeadershipLost
			}
			return nil
		},
	}
	return election.Run(ctx, func() {})
}
