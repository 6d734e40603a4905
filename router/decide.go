package router

import (
	"context"
	"log/slog"
	"time"
)

// routesShare limits the share of time that the router spends on decisions for all routes. If
// routes change constantly, the share is at most 1/routesShare, so that endpoint changes, which are
// cheap to apply, do not have to wait.
const routesShare = 4

// decide waits until the view is filled and then calls follow until ctx is done.
func (s *session) decide(ctx context.Context, done func()) error {
	if !s.seen.waitFilled(ctx) {
		return nil
	}
	s.seen.all()
	s.follow(ctx, done)
	return nil
}

// decideRetryDelay is the delay before a failed configuration is retried.
const decideRetryDelay = time.Second

// follow writes a configuration after each change until ctx is done. It calls done after each
// attempt, even if the attempt fails.
func (s *session) follow(ctx context.Context, done func()) {
	var routesFrom time.Time
	for {
		changed, ok := s.seen.next(ctx, routesFrom)
		if !ok {
			return
		}
		start := time.Now()
		err := s.decideOnce(changed)
		switch {
		case err != nil:
			slog.Error("cannot write router configuration; the previous one stays in effect", "error", err)
			routesFrom = time.Now().Add(decideRetryDelay)
		case changed.routes:
			routesFrom = time.Now().Add((routesShare - 1) * time.Since(start))
		}
		done()
	}
}

// decideOnce writes a configuration for the current state. changed selects the inputs that
// decideOnce rereads.
func (s *session) decideOnce(changed changes) error {
	touched, routes, verdicts := s.update(changed)
	state := s.builder.State()
	if namespace := s.Settings.Text("ROUTER_SERVICE_NAMESPACE"); namespace != "" {
		state.PeerEndpoints = s.builder.Source.Endpoints(namespace, canonical(s.Settings))
	}
	if pem := s.fallback.Load(); pem != nil {
		s.writer.DefaultCertificate = *pem
	}
	config, err := s.writer.Write(state, touched, true)
	if err != nil {
		s.seen.all()
		return err
	}
	s.mu.Lock()
	number := s.engine.Set(config)
	if changed.routes {
		s.configured = routes
	}
	s.mu.Unlock()
	s.first.CompareAndSwap(0, int64(number))
	if changed.routes {
		s.status.set(verdicts)
	}
	return nil
}
