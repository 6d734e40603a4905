// Package idle holds connections to services that have no pods until they have some. A service with the annotation of `oc idle` gets its
// packets redirected to a listener of this node, in front of the service proxy, which would refuse them. The listener accepts, tells by an event that the
// service needs pods, waits for its endpoints and passes on what it gets.
//
// When the node's process is killed, connections that went through it end; those that pods have directly, as all have a few seconds after a service
// woke, do not.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications; the annotations and the event are those of its
// unidling proxy.
package idle

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/idling"
)

// Proxy is the part of a node that holds connections.
type Proxy struct {
	// Client may watch services and endpoint slices and create events.
	Client kubernetes.Interface
	// Table is the nftables table, in family ip, that the part owns.
	Table string
	// Host is the node's name, for its events.
	Host string
	// Off makes the part do nothing: the service proxy refuses connections to services without pods, idle or not.
	Off bool
}

const (
	// maxHeld is how many connections are held or passed on at once; further ones are closed.
	maxHeld = 1024
	// grace is how long connections to a service that woke still come here: the service proxy learns of its endpoints a little later.
	grace = 10 * time.Second
	// retry is the time until the table is written again after a failure.
	retry = 5 * time.Second
)

// Name is the part's name.
func (*Proxy) Name() string { return "idling" }

// Run holds connections until ctx ends.
func (p *Proxy) Run(ctx context.Context, ready func()) error {
	if p.Off {
		ready()
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return fmt.Errorf("listen for idle services: %w", err)
	}
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
		listener.Close()
		return fmt.Errorf("watch services: %w", err)
	}
	h := &holder{proxy: p, wakes: wakes{proxy: p}}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	var tasks sync.WaitGroup
	defer tasks.Wait()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), services.HasSynced) {
		listener.Close()
		return nil
	}
	tasks.Go(func() { h.serve(ctx, listener) })
	if err := p.follow(ctx, h, listener, services.GetStore(), changed, ready); err != nil {
		listener.Close()
		return fmt.Errorf("redirect connections to idle services: %w", err)
	}
	return nil
}

// follow keeps the table as the services are. A failure to write it at first is returned; later ones are logged, and tried again.
func (p *Proxy) follow(ctx context.Context, h *holder, listener net.Listener, services cache.Store, changed <-chan struct{}, ready func()) error {
	port := listener.Addr().(*net.TCPAddr).Port
	leaving := map[netip.AddrPort]time.Time{}
	written, first := map[netip.AddrPort]target{}, true
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
		wait := remain(wanted, written, leaving, time.Now())
		h.know(wanted)
		if first || !sameKeys(wanted, written) {
			err := write(ctx, p.Table, port, wanted)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && first:
				return err
			case err != nil:
				slog.Error("cannot redirect connections to idle services", "err", err)
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

// target is a port of a service.
type target struct {
	service cache.ObjectName
	// port is the port's name, by which endpoints have it too.
	port string
}

// idle are the addresses of idle services.
func idle(services cache.Store) map[netip.AddrPort]target {
	found := map[netip.AddrPort]target{}
	for _, object := range services.List() {
		service := object.(*corev1.Service)
		address, err := netip.ParseAddr(service.Spec.ClusterIP)
		if _, is := idling.Since(service.Annotations); !is || err != nil || !address.Is4() {
			continue
		}
		for _, port := range service.Spec.Ports {
			if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
				found[netip.AddrPortFrom(address, uint16(port.Port))] = target{cache.MetaObjectToName(service), port.Name}
			}
		}
	}
	return found
}

// remain adds to the wanted addresses those that left them a short while ago, and returns the time until the next of these goes.
func remain(wanted, written map[netip.AddrPort]target, leaving map[netip.AddrPort]time.Time, now time.Time) (wait time.Duration) {
	for address, of := range written {
		if _, still := wanted[address]; still {
			delete(leaving, address)
			continue
		}
		if leaving[address].IsZero() {
			leaving[address] = now.Add(grace)
		}
		left := leaving[address].Sub(now)
		if left <= 0 {
			delete(leaving, address)
			continue
		}
		wanted[address] = of
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

func sameKeys(a, b map[netip.AddrPort]target) bool {
	for address := range a {
		if _, known := b[address]; !known {
			return false
		}
	}
	return len(a) == len(b)
}

// lean drops what is not looked at of an object.
func lean(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	kept := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, UID: service.UID, ResourceVersion: service.ResourceVersion}}
	if since := service.Annotations[idling.IdledAt]; since != "" {
		kept.Annotations = map[string]string{idling.IdledAt: since}
		kept.Spec = corev1.ServiceSpec{ClusterIP: service.Spec.ClusterIP, Ports: service.Spec.Ports}
	}
	return kept, nil
}
