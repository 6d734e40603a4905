// Package ingressip gives services of type LoadBalancer addresses of a pool where no cloud does: one for each, in its status and among its external
// addresses, until it is deleted or changes its type. The administrator has a node receive what is sent to them.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.3.2; fields and events are those of OpenShift 3's controller.
package ingressip

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// The reasons of events about services.
const (
	// RangeFull: no address of the pool is free.
	RangeFull = "IngressIPRangeFull"
	// Reallocated: the service's address is another one's or none of the pool, and it gets a new one.
	Reallocated = "IngressIPReallocated"
)

// Addresses is the part that gives addresses.
type Addresses struct {
	// Client has every right.
	Client kubernetes.Interface
	// Network is the pool, of IPv4; its first and its last address are not given.
	Network netip.Prefix
}

// Name is the part's name.
func (*Addresses) Name() string { return "ingress-addresses" }

// Run gives addresses until ctx ends; ready is called when all services are known.
func (a *Addresses) Run(ctx context.Context, ready func()) error {
	factory := informers.NewSharedInformerFactory(a.Client, 0)
	services := factory.Core().V1().Services()
	events, shutdown := controller.Recorder(ctx, a.Client, scheme.Scheme, "ingressip-controller")
	defer shutdown()
	l := &loop{client: a.Client, services: services.Lister(), events: events, pool: newPool(a.Network)}
	set := controller.Set{{
		Name: "ingress-addresses", Watches: []controller.Watch{{Informer: services.Informer()}}, Reconcile: l.reconcile, Calls: &l.waiting,
		Workers: 1, // the pool is of one mind
	}}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	return set.Run(ctx, ready)
}

// loop gives one service what it should have.
type loop struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	events   record.EventRecorder
	pool     *pool
	known    bool
	waiting  controller.Calls
}

func (l *loop) reconcile(ctx context.Context, key controller.Key) error {
	if !l.known { // what has an address keeps it before others get one
		if err := l.learn(); err != nil {
			return err
		}
	}
	service, err := l.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		l.release(key)
		return nil
	}
	if err != nil {
		return err
	}
	if !ours(service) || service.DeletionTimestamp != nil {
		if err := l.take(ctx, service); err != nil {
			return err
		}
		l.release(key)
		return nil
	}
	return l.give(ctx, key, service)
}

// ours says whether a service gets its address here: those of a class get theirs from somebody else.
func ours(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil
}

// learn notes the addresses that services have. Where two have the same, the older one keeps it.
func (l *loop) learn() error {
	services, err := l.services.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(string(a.UID), string(b.UID))
	})
	for _, service := range services {
		if address := current(service); ours(service) && address.IsValid() {
			l.pool.claim(cache.MetaObjectToName(service), address)
		}
	}
	l.known = true
	return nil
}

// release makes the address of a service free, and lets those look again that got none.
func (l *loop) release(key controller.Key) {
	for _, other := range l.pool.release(key) {
		l.waiting.Add(other)
	}
}

// give sees to it that a service has an address.
func (l *loop) give(ctx context.Context, key controller.Key, service *corev1.Service) error {
	address := current(service)
	if address.IsValid() && !l.pool.claim(key, address) {
		l.events.Eventf(service, corev1.EventTypeWarning, Reallocated, "The ingress IP %s is not free in the range %s. Another one will be allocated.", address, l.pool.network)
		address = netip.Addr{}
	}
	if !address.IsValid() {
		wish, _ := netip.ParseAddr(service.Spec.LoadBalancerIP) // one that is none is none that is wished
		if address = l.pool.allocate(key, wish); !address.IsValid() {
			l.events.Eventf(service, corev1.EventTypeWarning, RangeFull, "No address of the ingress range %s is free.", l.pool.network)
			return nil // it is looked at again when one is
		}
		ingress := []corev1.LoadBalancerIngress{{IP: address.String()}}
		changed, err := l.patch(ctx, service, map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}}, "status")
		if err != nil {
			return err
		}
		service = changed
	}
	return l.external(ctx, service, address)
}

// take takes from a service what it had while it was of another type.
func (l *loop) take(ctx context.Context, service *corev1.Service) error {
	if !l.pool.owns(cache.MetaObjectToName(service)) && !slices.ContainsFunc(service.Spec.ExternalIPs, l.pool.holds) {
		return nil
	}
	if current(service).IsValid() && l.pool.network.Contains(current(service)) {
		changed, err := l.patch(ctx, service, map[string]any{"status": map[string]any{"loadBalancer": nil}}, "status")
		if err != nil {
			return err
		}
		service = changed
	}
	return l.external(ctx, service, netip.Addr{})
}

// external makes an address the only one of the pool among the external addresses of a service.
func (l *loop) external(ctx context.Context, service *corev1.Service, address netip.Addr) error {
	wanted := slices.DeleteFunc(slices.Clone(service.Spec.ExternalIPs), func(text string) bool {
		return l.pool.holds(text) && text != address.String()
	})
	if address.IsValid() && !slices.Contains(wanted, address.String()) {
		wanted = append(wanted, address.String())
	}
	if slices.Equal(wanted, service.Spec.ExternalIPs) {
		return nil
	}
	_, err := l.patch(ctx, service, map[string]any{"spec": map[string]any{"externalIPs": wanted}})
	return err
}

// patch changes a service as it was read, and no later one.
func (l *loop) patch(ctx context.Context, service *corev1.Service, change map[string]any, subresources ...string) (*corev1.Service, error) {
	change["metadata"] = map[string]any{"resourceVersion": service.ResourceVersion, "uid": service.UID}
	content, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	changed, err := l.client.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, content, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("change service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return changed, nil
}

// current is the address that a service has, if it has one.
func current(service *corev1.Service) (address netip.Addr) {
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if address, err := netip.ParseAddr(ingress.IP); err == nil {
			return address
		}
	}
	return netip.Addr{}
}
