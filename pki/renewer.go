package pki

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Renewer is the component that renews certificates before they expire. A server or client that
// reloads its certificate files requires no hook: the API server, etcd and every client that uses
// this package's kubeconfigs reload theirs.
type Renewer struct {
	// Spec returns the required credentials. Run calls it on each check, so that the certificates
	// follow changes to the machine's addresses.
	Spec func() (Spec, error)
	// Interval is the interval between checks. The default is one hour.
	Interval time.Duration

	hooks []func(issued []string)
}

// OnRenew adds a function that Run calls with the names of renewed files, as in Credentials.Issued.
// It must be called before Run.
func (r *Renewer) OnRenew(hook func(issued []string)) { r.hooks = append(r.hooks, hook) }

// Name returns the name of the component.
func (r *Renewer) Name() string { return "certificates" }

// Run checks certificates until ctx is done. The first check must succeed. Run logs the errors of
// later checks and retries, so that, for example, a full disk does not stop a running host.
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
		return fmt.Errorf("determine names and addresses of certificates: %w", err)
	}
	credentials, err := Ensure(spec)
	if err != nil {
		return fmt.Errorf("renew certificates: %w", err)
	}
	if remaining := credentials.CAExpiry.Sub(spec.completed().Now()); remaining < year/2 {
		slog.Warn("certificate authority expires soon", "expiry", credentials.CAExpiry, "path", spec.Dir)
	}
	if len(credentials.Issued) == 0 {
		return nil
	}
	slog.Info("issued certificates", "names", credentials.Issued)
	for _, hook := range r.hooks {
		hook(credentials.Issued)
	}
	return nil
}

// RenewalInterval returns the interval between checks of certificates with the given lifetime. It
// is at most an hour, and short enough for many checks in the last third of the lifetime, when
// certificates are renewed.
func RenewalInterval(lifetime time.Duration) time.Duration {
	return min(lifetime/360, time.Hour)
}
