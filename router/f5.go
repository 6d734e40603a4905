package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	networkv1 "github.com/openshift/api/network/v1"
	networkclient "github.com/openshift/client-go/network/clientset/versioned"
	networkinformers "github.com/openshift/client-go/network/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/f5"
	"github.com/slipway-platform/slipway/router/model"
)

// F5 is a router of type f5-router. It makes the same decisions about routes as Router, but
// configures an F5 BIG-IP appliance, which serves the routes.
type F5 struct {
	// Config is the client configuration for the cluster. Its user needs the same permissions as
	// Router's user. For native integration, it also needs permission to watch nodes and, if the
	// nodes' VXLAN port is not the default, ClusterNetworks.
	Config *rest.Config
	// Settings contains the router's environment variables. The ROUTER_EXTERNAL_HOST_* variables
	// describe the appliance.
	Settings environment.Settings
	// ServiceCA is the path to the service CA file. It is optional. The file can change while the
	// router is running.
	ServiceCA string
}

// Name returns the name of the component.
func (*F5) Name() string { return "router" }

const (
	// resyncInterval is the interval at which the router compares all its objects on the appliance
	// with the routes. This is necessary because other clients can change the objects.
	resyncInterval = time.Minute
	// maxRetryDelay is the maximum delay before a failed change is retried. The initial delay is
	// decideRetryDelay.
	maxRetryDelay = 30 * time.Second
)

// f5Session is a running F5 router.
type f5Session struct {
	*F5
	*decisions
	appliance *f5.Appliance
	services  map[model.ServiceUnitKey][]model.Endpoint

	delay time.Duration      // delay of the last retry; 0 after a success
	next  time.Time          // earliest time of the next change to the appliance
	later chan time.Duration // receives the delay until the next resync
	stale atomic.Bool        // true if the appliance must be read again

	mu      sync.Mutex
	problem string // reason why the appliance does not match the routes
}

// Run configures the appliance until ctx is done. It calls ready when the appliance serves all
// routes that existed at the start. After Run returns, the configuration remains on the appliance.
func (r *F5) Run(ctx context.Context, ready func()) error {
	config, err := f5.Read(r.Settings)
	if err != nil {
		return err
	}
	decisions, err := newDecisions(r.Config, r.Settings, "")
	if err != nil {
		return err
	}
	view := decisions.seen
	var networks networkinformers.SharedInformerFactory
	if config.Native() {
		if networks, err = view.watchNetwork(r.Config); err != nil {
			return err
		}
	}
	s := &f5Session{
		F5: r, decisions: decisions, appliance: f5.New(config), services: map[model.ServiceUnitKey][]model.Endpoint{},
		later: make(chan time.Duration, 1), problem: "the appliance is not configured yet",
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	part := func(run func() error) {
		group.Go(func() {
			if err := run(); err != nil {
				cancel(err)
			}
		})
	}
	part(func() error { return view.run(ctx) })
	if networks != nil {
		part(func() error { networks.Start(ctx.Done()); <-ctx.Done(); networks.Shutdown(); return nil })
	}
	part(func() error { return s.status.run(ctx) })
	part(func() error { s.resync(ctx); return nil })
	part(func() error {
		if !view.waitFilled(ctx) {
			return nil
		}
		view.all()
		s.follow(ctx, sync.OnceFunc(ready))
		return nil
	})
	if address := r.Settings.Text("ROUTER_LISTEN_ADDR"); address != "" {
		part(func() error { return s.serveHealth(ctx, address) })
	}
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// watchNetwork watches the nodes and ClusterNetworks. It returns a factory that the caller must
// start.
func (v *view) watchNetwork(config *rest.Config) (networkinformers.SharedInformerFactory, error) {
	client, err := networkclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create network client: %w", err)
	}
	factory := networkinformers.NewSharedInformerFactory(client, 0)
	v.nodes, v.networks = v.factory.Core().V1().Nodes().Informer(), factory.Network().V1().ClusterNetworks().Informer()
	return factory, errors.Join(v.watch("nodes", v.nodes), v.watch("clusternetworks", v.networks))
}

// follow keeps the appliance in sync with the cluster until ctx is done. It calls ready when the
// appliance first matches the cluster.
func (s *f5Session) follow(ctx context.Context, ready func()) {
	for {
		changed, ok := s.seen.next(ctx, time.Time{})
		if !ok {
			return
		}
		s.write(ctx, changed)
		if s.unready() == "" {
			ready()
		}
	}
}

// write updates the appliance after changes in the cluster. If an update fails, resync retries it.
func (s *f5Session) write(ctx context.Context, changed changes) {
	_, _, verdicts := s.update(changed)
	if changed.routes {
		s.status.set(verdicts)
	}
	s.readServices(changed)
	if time.Now().Before(s.next) {
		return
	}
	if s.stale.Swap(false) {
		s.appliance.Forget()
	}
	err := s.sync(ctx)
	if ctx.Err() != nil {
		return
	}
	delay, problem := resyncInterval, ""
	if err == nil {
		s.delay = 0
	} else {
		s.delay = min(max(2*s.delay, decideRetryDelay), maxRetryDelay)
		s.next, delay = time.Now().Add(s.delay), s.delay
		problem = "the appliance does not match the routes: " + err.Error()
		slog.Error("cannot configure the appliance; the previous configuration stays in effect", "error", err, "retryAfter", delay)
	}
	s.mu.Lock()
	s.problem = problem
	s.mu.Unlock()
	select {
	case <-s.later:
	default:
	}
	s.later <- delay
}

func (s *f5Session) sync(ctx context.Context) error {
	authority, err := s.serviceCA()
	if err != nil {
		slog.Error("cannot read service CAs; re-encrypt routes without their own certificate authority are not served", "error", err)
	}
	return s.appliance.Sync(ctx, f5.State{
		Routes: s.builder.State(), Services: s.services, ServiceCA: authority, Nodes: s.nodes(), VXLANPort: s.vxlanPort(),
	})
}

// serviceCA returns the service CA certificates, or "" if no file is configured.
func (s *f5Session) serviceCA() (string, error) {
	if s.ServiceCA == "" {
		return "", nil
	}
	content, err := os.ReadFile(s.ServiceCA)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

// readServices reads the endpoints of changed services.
func (s *f5Session) readServices(changed changes) {
	keys := changed.services
	if changed.routes { // true for the first changes and after the shard's namespaces change
		clear(s.services)
		keys = map[model.ServiceUnitKey]bool{}
		for _, key := range s.seen.services.GetStore().ListKeys() {
			keys[model.ServiceUnitKey(key)] = true
		}
	}
	for key := range keys {
		namespace, name := key.Split()
		delete(s.services, key)
		if endpoints := s.builder.Source.Endpoints(namespace, name); len(endpoints) > 0 && s.seen.inShard(namespace) {
			s.services[key] = endpoints
		}
	}
}

// nodes returns the node addresses, sorted.
func (s *f5Session) nodes() (addresses []netip.Addr) {
	if s.seen.nodes == nil {
		return nil
	}
	for _, object := range s.seen.nodes.GetStore().List() {
		for _, status := range object.(*corev1.Node).Status.Addresses {
			address, err := netip.ParseAddr(status.Address)
			if err == nil && address.Is4() && status.Type == corev1.NodeInternalIP {
				addresses = append(addresses, address)
			}
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}

// knowsNetworks reports whether the view contains the ClusterNetworks. It also returns true if the
// router has no permission to watch them, because the router then uses the default VXLAN port.
func (v *view) knowsNetworks() bool {
	return v.networks.HasSynced() || v.isForbidden("clusternetworks")
}

// vxlanPort returns the nodes' VXLAN port, or 0 for the default.
func (s *f5Session) vxlanPort() int {
	if s.seen.networks == nil {
		return 0
	}
	object, exists, err := s.seen.networks.GetStore().GetByKey(networkv1.ClusterNetworkDefault)
	if err != nil || !exists || object.(*networkv1.ClusterNetwork).VXLANPort == nil {
		return 0
	}
	return int(*object.(*networkv1.ClusterNetwork).VXLANPort)
}

// resync periodically triggers new decisions for all routes and makes the next write reread the
// appliance's objects. Each write sets the delay until the next resync.
func (s *f5Session) resync(ctx context.Context) {
	timer := time.NewTimer(resyncInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case delay := <-s.later:
			timer.Reset(delay)
		case <-timer.C:
			s.stale.Store(true)
			s.seen.all()
			timer.Reset(resyncInterval)
		}
	}
}

// unready returns the reason why the appliance does not match the routes, or "".
func (s *f5Session) unready() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem := s.seen.problem(); problem != "" && s.problem != "" {
		return problem
	}
	return s.problem
}

// serveHealth serves health checks until ctx is done.
func (s *f5Session) serveHealth(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on ROUTER_LISTEN_ADDR: %w", err)
	}
	defer listener.Close()
	mux := http.NewServeMux()
	handleHealth(mux, func() string { return "" }, s.unready)
	return serveAll(ctx, s.Settings, listener, mux)
}
