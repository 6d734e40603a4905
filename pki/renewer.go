package pki

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Renewer is a part that issues certificates anew before they end. A server or client that reads its
// files by itself when they change needs no hook: the API server, etcd and every client of a
// kubeconfig of this package do.
type Renewer struct {
	// Spec returns what the identity must state; it is asked at each check, so that a change of the
	// machine's addresses is found.
	Spec func() (Spec, error)
	// Interval is the time between checks; 0 means an hour.
	Interval time.Duration

	hooks []func(issued []string)
}

// OnRenew adds a function that is called, in Run, with the names of what was issued anew, as in
// Identity.Issued. It must be called before Run.
func (r *Renewer) OnRenew(hook func(issued []string)) { r.hooks = append(r.hooks, hook) }

// Name is the part's name.
func (r *Renewer) Name() string { return "certificates" }

// Run checks until ctx ends. The first check must succeed; later ones are logged when they fail and
// tried again, because a running host is better than one that stopped for a full disk.
func (r *Renewer) Run(ctx context.Context, ready func()) error {
	interval := r.Interval
	if interval == 0 {
		interval = time.Hour
	}
	if err := r.renew(); err != nil {
		return err
	}
	ready()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := r.renew(); err != nil {
				slog.Error("cannot renew certificates", "error", err)
			}
		}
	}
}

func (r *Renewer) renew() error {
	spec, err := r.Spec()
	if err != nil {
		return fmt.Errorf("find what certificates must state: %w", err)
	}
	identity, err := Ensure(spec)
	if err != nil {
		return fmt.Errorf("renew certificates: %w", err)
	}
	if left := identity.CAExpiry.Sub(spec.completed().Now()); left < year/2 {
		slog.Warn("a certificate authority ends soon", "at", identity.CAExpiry, "folder", spec.Dir)
	}
	if len(identity.Issued) == 0 {
		return nil
	}
	slog.Info("issued certificates", "names", identity.Issued)
	for _, hook := range r.hooks {
		hook(identity.Issued)
	}
	return nil
}
