// Package router implements the router at the edge of the cluster. The router watches routes and
// the endpoints of their services, and decides which routes it serves. It runs HAProxy to serve
// these routes, and writes its decisions to the route status.
//
// Source: OpenShift Container Platform 3.9 Architecture, sections on routers and routes.
package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/router/model"
)

// Router is the component that runs a router with HAProxy.
type Router struct {
	// Config is the client configuration for the cluster. Its user must be allowed to watch routes,
	// services, endpoint slices and namespaces, and to write the route status.
	Config *rest.Config
	// Settings contains the router's environment variables.
	Settings environment.Settings
	// Program is the path to the HAProxy program.
	Program string
	// Dir is the directory that contains HAProxy's configuration and sockets. Its path must be
	// short and absolute.
	Dir string
	// User is the account that HAProxy switches to. It is optional.
	User string
	// ServiceCA is the path to the service CA file. It is optional. The file can change while the
	// router is running.
	ServiceCA string
	// Domain is the domain that completes a route's spec.subdomain if ROUTER_DOMAIN is not set. If
	// neither is set, routes with spec.subdomain are rejected.
	Domain string
	// ShutdownTimeout limits how long open requests can continue when the router stops.
	ShutdownTimeout time.Duration
	// Outlive keeps HAProxy running if this process is killed, until the next router that uses Dir
	// takes over.
	Outlive bool
	// Report, if set, is called with the reason why HAProxy does not serve the desired
	// configuration, or with "" when HAProxy serves it.
	Report func(string)
}

// Name returns the name of the component.
func (*Router) Name() string { return "router" }

// session is a running router.
type session struct {
	*Router
	*decisions
	writer haproxy.Writer
	engine *haproxy.Engine

	mu         sync.Mutex
	configured []*routev1.Route // all routes of the newest configuration
	// rejectedRoutes contains the routes that HAProxy rejected, in the version that was rejected.
	rejectedRoutes map[model.ServiceAliasConfigKey]*routev1.Route
	again          func() // triggers a new configuration
	observed       *metrics

	fallback atomic.Pointer[[]byte] // the new default certificate and its key; nil if unchanged

	leaving atomic.Bool  // the router is stopping and serves only for a short time
	first   atomic.Int64 // number of the first configuration with routes, or 0
}

// Run serves routes until ctx is done. It calls ready when HAProxy serves all routes that existed
// at the start.
func (r *Router) Run(ctx context.Context, ready func()) error {
	pem, err := defaultCertificate(r.Settings, filepath.Join(r.Dir, "default.pem"))
	if err != nil {
		return err
	}
	decisions, err := newDecisions(r.Config, r.Settings, r.Domain)
	if err != nil {
		return err
	}
	view := decisions.seen
	// Reviews use a client with its own rate limit, so that guessed tokens do not delay the
	// router's other requests.
	reviews, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	if r.Report == nil {
		r.Report = func(string) {}
	}
	s := &session{
		Router: r, decisions: decisions, rejectedRoutes: map[model.ServiceAliasConfigKey]*routev1.Route{},
		again: view.all, observed: newMetrics(),
		writer: haproxy.Writer{
			Dir: r.Dir, Settings: r.Settings, User: r.User, DefaultCertificate: pem, ServiceCA: r.ServiceCA,
		},
	}
	s.rejection = s.rejectionOf
	s.observed.watching(view.problem)
	s.engine = &haproxy.Engine{
		Program: r.Program, Dir: r.Dir, Interval: r.Settings.Duration("RELOAD_INTERVAL"),
		Script: r.Settings.Text("RELOAD_SCRIPT"), ShutdownTimeout: r.ShutdownTimeout,
		StatsTimeout: r.Settings.Duration("ROUTER_METRICS_HAPROXY_TIMEOUT"), Outlive: r.Outlive,
		Rejected: s.rejected, Observe: s.reloaded,
	}
	if !r.Settings.On("ROUTER_BIND_PORTS_AFTER_SYNC") && !s.engine.Serves() {
		empty, err := s.writer.Write(model.Build(nil, model.Source{}), nil, true)
		if err != nil {
			return err
		}
		s.engine.Set(empty)
	}
	ctx, cancel := s.untilLeft(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	part := func(run func() error) {
		group.Go(func() {
			if err := run(); err != nil {
				cancel(err)
			}
		})
	}
	serving := make(chan struct{})
	part(func() error { return view.run(ctx) })
	decided := make(chan struct{})
	part(func() error { return s.decide(ctx, sync.OnceFunc(func() { close(decided) })) })
	part(func() error {
		for _, step := range []chan struct{}{decided, serving} {
			select {
			case <-step:
			case <-ctx.Done():
				return nil
			}
		}
		ready()
		return nil
	})
	part(func() error { return s.status.run(ctx) })
	part(func() error { s.followFiles(ctx); return nil })
	part(func() error { return s.engine.Run(ctx, sync.OnceFunc(func() { close(serving) })) })
	if address := r.Settings.Text("ROUTER_LISTEN_ADDR"); address != "" {
		guard := access{settings: r.Settings, reviews: reviews}
		part(func() error { return serve(ctx, address, guard, s.engine, s.observed, s.unready) })
	}
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// reloaded records that HAProxy serves a configuration, and how long it took to write the
// configuration and to reload HAProxy.
func (s *session) reloaded(write, reload time.Duration) {
	s.observed.observe(write, reload)
	s.Report("")
}

// unready returns the reason why the router must not receive requests. Either the router is
// stopping, or it does not yet serve all routes that existed at its start. If the router is ready,
// unready returns "".
func (s *session) unready() string {
	first := int(s.first.Load())
	switch {
	case s.leaving.Load():
		return "the router is stopping"
	case first == 0 && s.seen.problem() != "":
		return s.seen.problem()
	case first == 0 || !s.engine.Reached(first):
		return "routes are not served yet"
	}
	return ""
}

// untilLeft returns a context that is done ROUTER_GRACEFUL_SHUTDOWN_DELAY after ctx. During the
// delay, the router still serves requests but is not ready, so that load balancers stop sending
// requests before the router closes its ports.
func (s *session) untilLeft(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		s.leaving.Store(true)
		select {
		case <-time.After(s.Settings.Duration("ROUTER_GRACEFUL_SHUTDOWN_DELAY")):
		case <-longer.Done():
		}
		cancel(nil)
	})
	return longer, func(cause error) { stop(); cancel(cause) }
}

// canonical returns the router's name in the route status.
func canonical(s environment.Settings) string { return cmp.Or(s.Text("ROUTER_SERVICE_NAME"), "public") }

func describe(route *routev1.Route) string { return fmt.Sprintf("%s/%s", route.Namespace, route.Name) }
