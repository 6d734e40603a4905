// Package ingressip allocates addresses from a pool to services of type LoadBalancer, in clusters
// without a cloud provider. It writes a service's address to the service's status and external IPs.
// It releases the address when the service is deleted or its type changes. The administrator must
// route the addresses to a node.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.3.2. The fields and events match those
// of OpenShift 3's controller.
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// Event reasons for services.
const (
	// RangeFull means that the pool has no free address.
	RangeFull = "IngressIPRangeFull"
	// Reallocated means that the service's address is in use by another service or not in the pool,
	// and will be replaced.
	Reallocated = "IngressIPReallocated"
)

// Addresses is the component that allocates addresses.
type Addresses struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Network is the IPv4 pool. The first and last address in the network are not allocated.
	Network netip.Prefix
}

// Name returns the component's name.
func (*Addresses) Name() string { return "ingress-addresses" }

// Run allocates addresses until ctx is done. It calls ready when the cache contains all services.
func (a *Addresses) Run(ctx context.Context, ready func()) error {
	services := a.Deps.Informers.Core().V1().Services()
	events, shutdown := controller.Recorder(ctx, a.Deps.Kube, scheme.Scheme, "ingressip-controller")
	defer shutdown()
	l := &loop{client: a.Deps.Kube, services: services.Lister(), events: events, pool: newPool(a.Network)}
	set := controller.Manager{{
		Name: "ingress-addresses", Watches: []controller.Watch{{Informer: services.Informer()}}, Reconcile: l.reconcile, Trigger: &l.trigger,
		Workers: 1, // the pool has no lock
	}}
	a.Deps.Start()
	return set.Run(ctx, ready)
}

// loop reconciles services.
type loop struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	events   record.EventRecorder
	pool     *pool
	loaded   bool
	trigger  controller.Trigger
}

func (l *loop) reconcile(ctx context.Context, key controller.Key) error {
	if !l.loaded { // load existing addresses before the first allocation
		if err := l.loadAddresses(); err != nil {
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
	if !isManaged(service) || service.DeletionTimestamp != nil {
		if err := l.removeAddress(ctx, service); err != nil {
			return err
		}
		l.release(key)
		return nil
	}
	return l.ensureAddress(ctx, key, service)
}

// isManaged reports whether this controller allocates the service's address. Services with a load
// balancer class are managed by another controller.
func isManaged(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil
}

// loadAddresses adds existing service addresses to the pool. If two services have the same address,
// the older service keeps it.
func (l *loop) loadAddresses() error {
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
		if address := ingressAddress(service); isManaged(service) && address.IsValid() {
			l.pool.claim(cache.MetaObjectToName(service), address)
		}
	}
	l.loaded = true
	return nil
}

// release releases a service's address and enqueues the services that are waiting for an address.
func (l *loop) release(key controller.Key) {
	for _, waiting := range l.pool.release(key) {
		l.trigger.Add(waiting)
	}
}

// ensureAddress allocates an address if the service has none.
func (l *loop) ensureAddress(ctx context.Context, key controller.Key, service *corev1.Service) error {
	address := ingressAddress(service)
	if address.IsValid() && !l.pool.claim(key, address) {
		l.events.Eventf(service, corev1.EventTypeWarning, Reallocated, "The ingress IP %s is not free in the range %s. Another address will be allocated.", address, l.pool.network)
		address = netip.Addr{}
	}
	if !address.IsValid() {
		requested, _ := netip.ParseAddr(service.Spec.LoadBalancerIP) // an invalid address is ignored
		if address = l.pool.allocate(key, requested); !address.IsValid() {
			l.events.Eventf(service, corev1.EventTypeWarning, RangeFull, "The ingress IP range %s has no free address.", l.pool.network)
			return nil // release enqueues the service again
		}
		ingress := []corev1.LoadBalancerIngress{{IP: address.String()}}
		updated, err := l.patch(ctx, service, map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}}, "status")
		if err != nil {
			return err
		}
		service = updated
	}
	return l.setExternalIP(ctx, service, address)
}

// removeAddress removes the address that a service had before its type changed. If a service has a
// load balancer class, another controller manages its addresses, unless the pool allocated them.
func (l *loop) removeAddress(ctx context.Context, service *corev1.Service) error {
	if !l.pool.hasAddress(cache.MetaObjectToName(service)) &&
		(service.Spec.LoadBalancerClass != nil || !slices.ContainsFunc(service.Spec.ExternalIPs, l.pool.contains)) {
		return nil
	}
	if ingressAddress(service).IsValid() && l.pool.network.Contains(ingressAddress(service)) {
		updated, err := l.patch(ctx, service, map[string]any{"status": map[string]any{"loadBalancer": nil}}, "status")
		if err != nil {
			return err
		}
		service = updated
	}
	return l.setExternalIP(ctx, service, netip.Addr{})
}

// setExternalIP adds the address to a service's external IPs and removes all other pool addresses
// from them.
func (l *loop) setExternalIP(ctx context.Context, service *corev1.Service, address netip.Addr) error {
	externalIPs := slices.DeleteFunc(slices.Clone(service.Spec.ExternalIPs), func(text string) bool {
		return l.pool.contains(text) && text != address.String()
	})
	if address.IsValid() && !slices.Contains(externalIPs, address.String()) {
		externalIPs = append(externalIPs, address.String())
	}
	if slices.Equal(externalIPs, service.Spec.ExternalIPs) {
		return nil
	}
	_, err := l.patch(ctx, service, map[string]any{"spec": map[string]any{"externalIPs": externalIPs}})
	return err
}

// patch patches a service. It returns an error if the service has changed since it was read.
func (l *loop) patch(ctx context.Context, service *corev1.Service, change map[string]any, subresources ...string) (*corev1.Service, error) {
	change["metadata"] = map[string]any{"resourceVersion": service.ResourceVersion, "uid": service.UID}
	content, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	updated, err := l.client.CoreV1().Services(service.Namespace).Patch(ctx, service.Name, types.MergePatchType, content, metav1.PatchOptions{}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("patch service %s/%s: %w", service.Namespace, service.Name, err)
	}
	return updated, nil
}

// ingressAddress returns the address in a service's status, if any.
func ingressAddress(service *corev1.Service) (address netip.Addr) {
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if address, err := netip.ParseAddr(ingress.IP); err == nil {
			return address
		}
	}
	return netip.Addr{}
}
