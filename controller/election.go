package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Election uses a Lease to elect one of several instances as leader. An instance that loses the
// Lease stops leading and becomes a candidate again. Run releases the Lease after Lead has
// returned, so there are never two leaders at the same time.
type Election struct {
	// Client reads and writes the Lease.
	Client kubernetes.Interface
	// Namespace and Lease are the namespace and name of the Lease.
	Namespace, Lease string
	// Identity is the unique name of this instance.
	Identity string
	// Duration is the lease duration. A leader that does not renew the Lease within this time loses
	// it. The leader renews the Lease four times per Duration. The default is 30 seconds.
	Duration time.Duration
	// Retry is the interval between renewals and between attempts to acquire the Lease. The default
	// is a quarter of Duration.
	Retry time.Duration
	// Observe, if set, is called with the identity of each new leader.
	Observe func(identity string)
	// Lead runs while this instance is the leader. It must return when ctx is done. If Lead returns
	// an error, Run returns.
	Lead func(ctx context.Context) error
}

// Name returns the component's name.
func (e *Election) Name() string { return "election " + e.Lease }

// Run takes part in the election until ctx is done. It calls ready immediately, even if this
// instance is not the leader.
func (e *Election) Run(ctx context.Context, ready func()) error {
	ready()
	for ctx.Err() == nil {
		if err := e.term(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			slog.Warn("leadership lost", "lease", e.Namespace+"/"+e.Lease, "identity", e.Identity)
		}
	}
	return nil
}

// term waits for leadership. It returns when the leadership has ended, with Lead's error.
func (e *Election) term(ctx context.Context) error {
	// The elector must outlive ctx, because it must release the Lease after Lead has returned.
	elect, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(e.leaderElectionConfig(func(leading context.Context) {
		lead, end := context.WithCancel(leading)
		defer end()
		defer context.AfterFunc(ctx, end)()
		slog.Info("leadership gained", "lease", e.Namespace+"/"+e.Lease, "identity", e.Identity)
		done <- e.Lead(lead)
		stop()
	}))
	if err != nil {
		return fmt.Errorf("create election %q: %w", e.Lease, err)
	}
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			stop()
		}
	})()
	elector.Run(elect)
	if elect.Err() == nil { // the Lease was lost, so Lead is returning
		return <-done
	}
	select {
	case err := <-done:
		return err
	default: // ctx was done before this instance became the leader
		return nil
	}
}

func (e *Election) leaderElectionConfig(lead func(context.Context)) leaderelection.LeaderElectionConfig {
	duration := e.Duration
	if duration == 0 {
		duration = 30 * time.Second
	}
	retry := e.Retry
	if retry == 0 {
		retry = duration / 4
	}
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Lease},
			Client:     e.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		LeaseDuration: duration, RenewDeadline: duration * 2 / 3, RetryPeriod: retry,
		ReleaseOnCancel: true,
		Name:            e.Lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
			OnNewLeader:      e.Observe,
		},
	}
}
