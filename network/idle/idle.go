// Package idle holds connections and datagrams to idle services until the services have pods. If a
// service has the annotation of `oc idle`, packets to it are intercepted before the service proxy
// can reject them. Connections are redirected to a listener on this node. Datagrams are copied to
// the component through the kernel's packet log and dropped. The component creates an event that
// requests pods for the service, waits for the service's endpoints, and forwards the held
// connections and datagrams. This applies to cluster IPs, external IPs and node ports.
//
// hold.go holds connections and defines the timeouts, flow.go holds datagrams, and table.go
// intercepts packets.
//
// If the node process is killed, the connections that it forwards are closed. A few seconds after a
// service is unidled, clients connect directly to its pods, so later connections are not affected.
// While the process is not running, new packets are dropped instead of rejected, so clients
// retransmit them.
//
// The annotations and the event are the same as for OpenShift's unidling proxy.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications.
package idle

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Proxy is the node component that holds connections and datagrams to idle services.
type Proxy struct {
	// Client can watch services and endpoint slices and create events.
	Client kubernetes.Interface
	// Table is the name of the component's nftables tables: a table in the ip family and, if IPv6
	// is set, a table in the ip6 family.
	Table string
	// IPv6 indicates whether services can have IPv6 addresses.
	IPv6 bool
	// Host is the node name that is used in events.
	Host string
	// Policed, if set, reports whether network policies can restrict packets from a client to an
	// endpoint. The component does not forward these packets: they would come from the node, which
	// policies do not restrict. The client's next attempts reach the endpoint directly.
	Policed func(ctx context.Context, client, endpoint netip.Addr) (bool, error)
	// Disabled means that the component only removes its tables: the service proxy rejects
	// connections to services without pods, whether or not they are idle.
	Disabled bool
}

const (
	// drainPeriod is the time for which packets are still intercepted after a service has
	// endpoints, because the service proxy receives the endpoints slightly later.
	drainPeriod = 10 * time.Second
	// retryInterval is the delay before a retry after a failure to write the table.
	retryInterval = 5 * time.Second
)

// Name returns the component's name.
func (*Proxy) Name() string { return "idling" }

// Run holds connections and datagrams until ctx is done.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	if p.Disabled {
		if err := remove(ctx, p.Table, p.families()); err != nil && ctx.Err() == nil {
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}
	var listeners []net.Listener
	for _, family := range p.families() {
		listener, err := net.Listen(network(family), ":0")
		if err != nil {
			return fmt.Errorf("listen for idle services: %w", err)
		}
		defer listener.Close()
		listeners = append(listeners, listener)
	}
	log, err := openPacketLog()
	if err != nil {
		return fmt.Errorf("receive datagrams to idle services: %w", err)
	}
	defer log.Close()
	factory := informers.NewSharedInformerFactoryWithOptions(p.Client, 0, informers.WithTransform(trim))
	services := factory.Core().V1().Services().Informer()
	changes := make(chan struct{}, 1)
	notify := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	if _, err := services.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	}); err != nil {
		return fmt.Errorf("watch services: %w", err)
	}
	defer factory.Shutdown()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	ctx, stop := context.WithCancel(ctx) // stops the tasks before Run returns
	defer stop()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), services.HasSynced) {
		return nil
	}
	h := newHolder(p)
	var doors []receivers
	for i, family := range p.families() {
		listener := listeners[i]
		context.AfterFunc(ctx, func() { listener.Close() })
		tasks.Go(func() { h.serve(ctx, listener) })
		doors = append(doors, receivers{family: family, connections: uint16(listener.Addr().(*net.TCPAddr).Port), group: log.group})
	}
	context.AfterFunc(ctx, func() { log.Close() })
	tasks.Go(func() { h.receive(ctx, log) })
	if err := p.syncTable(ctx, h, doors, services.GetStore(), changes, ready); err != nil {
		return fmt.Errorf("intercept packets to idle services: %w", err)
	}
	return nil
}

// families returns the IP families that services use.
func (p *Proxy) families() []ipfamily.Family {
	if p.IPv6 {
		return []ipfamily.Family{ipfamily.IPv4, ipfamily.IPv6}
	}
	return []ipfamily.Family{ipfamily.IPv4}
}

// network returns the Go network name for TCP connections in an IP family.
func network(f ipfamily.Family) string { return [...]string{"tcp4", "tcp6"}[f] }

// writeAll writes the tables of all IP families.
func (p *Proxy) writeAll(ctx context.Context, doors []receivers, places map[destination]target) error {
	for _, d := range doors {
		if err := write(ctx, p.Table, d, places); err != nil {
			return err
		}
	}
	return nil
}

// syncTable keeps the tables in sync with the services. It returns an error if the first write
// fails. It logs later errors and retries.
func (p *Proxy) syncTable(ctx context.Context, h *holder, doors []receivers, services cache.Store, changes <-chan struct{}, ready func()) error {
	draining := map[destination]time.Time{}
	current, initial := map[destination]target{}, true
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-timer.C:
		}
		desired := idleDestinations(services)
		delay := keepDraining(desired, current, draining, time.Now(), func(tgt target) state { return p.state(ctx, services, tgt) })
		h.setTargets(desired)
		if initial || !sameKeys(desired, current) {
			err := p.writeAll(ctx, doors, desired)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && initial:
				return err
			case err != nil:
				slog.Error("cannot intercept packets to idle services", "error", err)
				timer.Reset(retryInterval)
				continue
			}
		}
		current = desired
		if initial {
			initial = false
			ready()
		}
		if delay > 0 {
			timer.Reset(delay)
		}
	}
}

// state returns the state of a service that is no longer idle.
func (p *Proxy) state(ctx context.Context, services cache.Store, tgt target) state {
	if _, exists, err := services.GetByKey(tgt.service.String()); err == nil && !exists {
		return absent
	}
	ctx, stop := context.WithTimeout(ctx, retryInterval)
	defer stop()
	if endpoints, err := p.endpoints(ctx, tgt); err != nil || len(endpoints) == 0 {
		return waking // the waiting connection reports the error
	}
	return awake
}
