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

// Election lets one of several instances act, by a Lease. Losing the Lease ends the leadership and not the process: the instance stands
// for election again. The Lease is given back when Run ends, after Lead has returned, so that a successor never overlaps.
type Election struct {
	// Client reads and writes the Lease.
	Client kubernetes.Interface
	// Namespace and Lease are where the Lease is and what it is called.
	Namespace, Lease string
	// Identity is this instance; no other one may have the same.
	Identity string
	// Duration is how long a leader that is not heard of stays one; 0 means 30 seconds. It renews the Lease every quarter of it.
	Duration time.Duration
	// Lead acts as the leader until ctx ends. An error ends Run.
	Lead func(ctx context.Context) error
}

// Name is the part's name.
func (e *Election) Name() string { return "election " + e.Lease }

// Run takes part in the election until ctx ends. It is ready at once: an instance that waits for its turn is well.
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

// term waits for leadership, leads, and returns when it has ended, with the error of Lead.
func (e *Election) term(ctx context.Context) error {
	// The elector must outlive ctx: it gives the Lease back only when Lead has returned.
	elect, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(e.config(func(leading context.Context) {
		lead, end := context.WithCancel(leading)
		defer end()
		defer context.AfterFunc(ctx, end)()
		slog.Info("leadership gained", "lease", e.Namespace+"/"+e.Lease, "identity", e.Identity)
		done <- e.Lead(lead)
		stop()
	}))
	if err != nil {
		return fmt.Errorf("set up election %q: %w", e.Lease, err)
	}
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			stop()
		}
	})()
	elector.Run(elect)
	if elect.Err() == nil { // the Lease is lost, Lead has been told
		return <-done
	}
	select {
	case err := <-done:
		return err
	default: // ctx ended before this instance became the leader
		return nil
	}
}

func (e *Election) config(lead func(context.Context)) leaderelection.LeaderElectionConfig {
	duration := e.Duration
	if duration == 0 {
		duration = 30 * time.Second
	}
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Lease},
			Client:     e.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		LeaseDuration: duration, RenewDeadline: duration * 2 / 3, RetryPeriod: duration / 4,
		ReleaseOnCancel: true,
		Name:            e.Lease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
		},
	}
}
