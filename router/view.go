package router

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/endpoints"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

// view is the router's cache of cluster objects.
type view struct {
	routeClient *rest.RESTClient
	factory     informers.SharedInformerFactory

	routes, services, slices cache.SharedIndexInformer
	// These informers are nil if the router does not need them.
	namespaces, nodes, networks cache.SharedIndexInformer

	labels, namespaceLabels, projectLabels labels.Selector

	// isOwnStatus reports whether the status of a route contains the entry that this router wrote
	// last. It is optional.
	isOwnStatus func(*routev1.Route) bool

	woken   chan struct{} // receives a value after a change
	mu      sync.Mutex
	pending changes
	missed  map[string]miss // last watch errors by resource
}

// changes describes the changes since the last configuration. It specifies whether routes or other
// inputs to the route decisions have changed, and which services or endpoints have changed.
type changes struct {
	routes   bool
	services map[model.ServiceUnitKey]bool
}

// byService is an index that maps services to endpoint slices.
const byService = "service"

func newView(config *rest.Config, s environment.Settings) (*view, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	routeClient, err := routes(config)
	if err != nil {
		return nil, err
	}
	namespace := s.Text("ROUTER_WATCH_NAMESPACE") // empty means all namespaces
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	v := &view{
		routeClient: routeClient, factory: factory, woken: make(chan struct{}, 1), missed: map[string]miss{},
		labels: s.Labels("ROUTE_LABELS"), namespaceLabels: s.Labels("NAMESPACE_LABELS"), projectLabels: s.Labels("PROJECT_LABELS"),
		routes:   cache.NewSharedIndexInformer(routeWatch(routeClient, namespace), &routev1.Route{}, 0, cache.Indexers{}),
		services: factory.Core().V1().Services().Informer(), slices: factory.Discovery().V1().EndpointSlices().Informer(),
	}
	if err := v.slices.AddIndexers(cache.Indexers{byService: serviceOf}); err != nil {
		return nil, fmt.Errorf("index endpoint slices: %w", err)
	}
	watched := map[string]cache.SharedIndexInformer{"routes": v.routes, "services": v.services, "endpointslices": v.slices}
	if !v.namespaceLabels.Empty() || !v.projectLabels.Empty() {
		v.namespaces = factory.Core().V1().Namespaces().Informer()
		watched["namespaces"] = v.namespaces
	}
	for resource, informer := range watched {
		if err := v.watch(resource, informer); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// watch records the changes to a resource.
func (v *view) watch(resource string, informer cache.SharedIndexInformer) error {
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		v.miss(resource, err)
	}); err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	note := func(object any) { v.note(informer, object) }
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, DeleteFunc: note, UpdateFunc: func(before, object any) {
			switch {
			case informer == v.nodes && sameAddresses(before, object):
			case informer == v.routes && v.isOwnUpdate(before.(*routev1.Route), object.(*routev1.Route)):
			default:
				note(before)
				note(object)
			}
		},
	}); err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	return nil
}

// sameAddresses reports whether two versions of a node have the same addresses. The rest of a
// node's status changes constantly.
func sameAddresses(before, after any) bool {
	return slices.Equal(before.(*corev1.Node).Status.Addresses, after.(*corev1.Node).Status.Addresses)
}

// isOwnUpdate reports whether the only change to a route is a status that the router itself has
// written. The router ignores these updates, because otherwise the statuses of many new routes
// cause repeated decisions for all routes.
func (v *view) isOwnUpdate(before, after *routev1.Route) bool {
	return v.isOwnStatus != nil && v.isOwnStatus(after) && before.UID == after.UID &&
		maps.Equal(before.Labels, after.Labels) && sameRequest(before, after)
}

// routes returns a client for OpenShift's route API.
func routes(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := routev1.Install(scheme); err != nil {
		return nil, fmt.Errorf("register routes: %w", err)
	}
	metav1.AddToGroupVersion(scheme, routev1.GroupVersion)
	own := rest.CopyConfig(config)
	own.APIPath, own.GroupVersion = "/apis", &routev1.GroupVersion
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType = runtime.ContentTypeJSON
	own.QPS, own.Burst = 100, 200 // high limits, because the router writes many statuses
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("create route client: %w", err)
	}
	return client, nil
}

func routeWatch(client *rest.RESTClient, namespace string) *cache.ListWatch {
	return cache.NewFilteredListWatchFromClient(client, "routes", namespace, func(*metav1.ListOptions) {})
}

func serviceOf(object any) ([]string, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]}, nil
}

// note records that an object has changed.
func (v *view) note(informer cache.SharedIndexInformer, object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	var service string
	switch informer {
	case v.services:
		service, _ = cache.MetaNamespaceKeyFunc(object) // never fails: the object has a name
	case v.slices:
		if of, _ := serviceOf(object); len(of) == 1 {
			service = of[0]
		}
	}
	v.mu.Lock()
	if service == "" {
		v.pending.routes = true
	} else {
		if v.pending.services == nil {
			v.pending.services = map[model.ServiceUnitKey]bool{}
		}
		v.pending.services[model.ServiceUnitKey(service)] = true
	}
	v.mu.Unlock()
	v.wake()
}

// all triggers a new decision for all routes.
func (v *view) all() {
	v.mu.Lock()
	v.pending.routes = true
	v.mu.Unlock()
	v.wake()
}

func (v *view) wake() {
	select {
	case v.woken <- struct{}{}:
	default:
	}
}

func (v *view) run(ctx context.Context) error {
	v.factory.StartWithContext(ctx)
	v.routes.RunWithContext(ctx)
	v.factory.Shutdown()
	return nil
}

func (v *view) waitFilled(ctx context.Context) bool {
	synced := []cache.InformerSynced{v.routes.HasSynced, v.services.HasSynced, v.slices.HasSynced}
	for _, informer := range []cache.SharedIndexInformer{v.namespaces, v.nodes} {
		if informer != nil {
			synced = append(synced, informer.HasSynced)
		}
	}
	if v.networks != nil {
		synced = append(synced, v.knowsNetworks)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// batchDelay is how long next waits for further changes after a change.
const batchDelay = 10 * time.Millisecond

// next waits for changes and returns them. Route changes, which are more expensive, wait until
// routesFrom. ok is false if ctx is done.
func (v *view) next(ctx context.Context, routesFrom time.Time) (result changes, ok bool) {
	for {
		var later <-chan time.Time
		v.mu.Lock()
		isDue := v.pending.routes && !time.Now().Before(routesFrom)
		if isDue || len(v.pending.services) > 0 {
			result, v.pending = v.pending, changes{routes: v.pending.routes && !isDue}
			result.routes = isDue
			v.mu.Unlock()
			return result, true
		}
		if v.pending.routes {
			later = time.After(time.Until(routesFrom))
		}
		v.mu.Unlock()
		select {
		case <-ctx.Done():
			return changes{}, false
		case <-later:
			continue
		case <-v.woken:
		}
		select {
		case <-time.After(batchDelay):
		case <-ctx.Done():
			return changes{}, false
		}
	}
}

// shard returns the routes that match the router's selectors.
func (v *view) shard() (routes []*routev1.Route) {
	for _, object := range v.routes.GetStore().List() {
		route, ok := object.(*routev1.Route)
		if ok && v.labels.Matches(labels.Set(route.Labels)) && v.inShard(route.Namespace) {
			routes = append(routes, route)
		}
	}
	return routes
}

func (v *view) inShard(namespace string) bool {
	if v.namespaces == nil {
		return true
	}
	object, ok, err := v.namespaces.GetStore().GetByKey(namespace)
	if err != nil || !ok {
		return false
	}
	set := labels.Set(object.(*corev1.Namespace).Labels)
	return v.namespaceLabels.Matches(set) && v.projectLabels.Matches(set)
}

// source returns the services in the form that the model uses.
func (v *view) source() model.Source {
	return model.Source{
		Service: func(namespace, name string) *corev1.Service {
			object, ok, err := v.services.GetStore().GetByKey(namespace + "/" + name)
			if err != nil || !ok {
				return nil
			}
			return object.(*corev1.Service)
		},
		Slices: func(namespace, name string) (slices []*discoveryv1.EndpointSlice) {
			objects, err := v.slices.GetIndexer().ByIndex(byService, namespace+"/"+name)
			if err != nil {
				return nil
			}
			for _, object := range objects {
				slices = append(slices, object.(*discoveryv1.EndpointSlice))
			}
			return slices
		},
		Host: endpoints.OfHost,
	}
}
