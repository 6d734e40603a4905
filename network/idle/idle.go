// Package idle holds connections and datagrams to services that have no pods until they have some. A service with the annotation of `oc idle`
// gets its packets taken in front of the service proxy, which would refuse them: connections are redirected to a listener of this node, datagrams are
// copied to it by the kernel's log and dropped. The part tells by an event that the service needs pods, waits for its endpoints and passes on what it got.
// That goes for the address of the cluster, for external addresses and for node ports.
//
// When the node's process is killed, connections that went through it end; those that pods have directly, as all have a few seconds after a service
// woke, do not. What comes until the process is there again is dropped, not refused, so that clients send it once more.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications; the annotations and the event are those of its
// unidling proxy.
package idle

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Proxy is the part of a node that holds connections.
type Proxy struct {
	// Client may watch services and endpoint slices and create events.
	Client kubernetes.Interface
	// Table is the nftables table, in family ip, that the part owns.
	Table string
	// Host is the node's name, for its events.
	Host string
	// Off makes the part only take its table away: the service proxy refuses connections to services without pods, idle or not.
	Off bool
}

const (
	// grace is how long packets to a service that has endpoints again still come here: the service proxy learns of them a little later.
	grace = 10 * time.Second
	// retry is the time until the table is written again after a failure.
	retry = 5 * time.Second
)

// Name is the part's name.
func (*Proxy) Name() string { return "idling" }

// Run holds connections and datagrams until ctx ends.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	if p.Off {
		if err := remove(ctx, p.Table); err != nil && ctx.Err() == nil {
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return fmt.Errorf("listen for idle services: %w", err)
	}
	defer listener.Close()
	log, err := openPackets()
	if err != nil {
		return fmt.Errorf("receive datagrams to idle services: %w", err)
	}
	defer log.Close()
	factory := informers.NewSharedInformerFactoryWithOptions(p.Client, 0, informers.WithTransform(lean))
	services := factory.Core().V1().Services().Informer()
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
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
	ctx, stop := context.WithCancel(ctx) // however Run ends
	defer stop()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), services.HasSynced) {
		return nil
	}
	context.AfterFunc(ctx, func() {
		listener.Close()
		log.Close()
	})
	h := newHolder(p)
	tasks.Go(func() { h.serve(ctx, listener) })
	tasks.Go(func() { h.receive(ctx, log) })
	doors := doors{connections: uint16(listener.Addr().(*net.TCPAddr).Port), group: log.group}
	if err := p.follow(ctx, h, doors, services.GetStore(), changed, ready); err != nil {
		return fmt.Errorf("take packets to idle services: %w", err)
	}
	return nil
}

// follow keeps the table as the services are. A failure to write it at first is returned; later ones are logged, and tried again.
func (p *Proxy) follow(ctx context.Context, h *holder, d doors, services cache.Store, changed <-chan struct{}, ready func()) error {
	leaving := map[place]time.Time{}
	written, first := map[place]target{}, true
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-again.C:
		}
		wanted := idle(services)
		wait := remain(wanted, written, leaving, time.Now(), func(of target) state { return p.state(ctx, services, of) })
		h.know(wanted)
		if first || !sameKeys(wanted, written) {
			err := write(ctx, p.Table, d, wanted)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && first:
				return err
			case err != nil:
				slog.Error("cannot take packets to idle services", "err", err)
				again.Reset(retry)
				continue
			}
		}
		written = wanted
		if first {
			first = false
			ready()
		}
		if wait > 0 {
			again.Reset(wait)
		}
	}
}

// state says how a service is that is no longer idle.
func (p *Proxy) state(ctx context.Context, services cache.Store, of target) state {
	if _, exists, err := services.GetByKey(of.service.String()); err == nil && !exists {
		return gone
	}
	ctx, stop := context.WithTimeout(ctx, retry)
	defer stop()
	if found, err := p.endpoints(ctx, of); err != nil || len(found) == 0 {
		return waking // an error is told by whoever waits
	}
	return awake
}
