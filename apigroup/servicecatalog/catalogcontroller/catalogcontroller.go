// Package catalogcontroller implements the service catalog controllers. They fetch broker catalogs,
// provision, update and deprovision instances, and create and delete bindings.
//
// Before a controller sends a request that can create or delete something at a broker, it records
// the request in the status of the object. If the controller is interrupted, the next process finds
// the record and repeats the request with the same ID. The broker therefore does not create a
// second instance. If a response does not show whether the broker has created an instance or
// binding, the controller requests the deletion before any retry (orphan mitigation).
//
// Source: Open Service Broker API, version 2.17. Conditions, reasons and events are the same as in
// service catalog release 0.3.
package catalogcontroller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	events "k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/catalogclient"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// Controllers is the component that runs the service catalog.
type Controllers struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Dialer connects to brokers.
	Dialer *outbound.Dialer
	// Domain is the cluster's DNS domain.
	Domain string
	// Secret is the key of the keyed hash for parameter checksums.
	Secret []byte
	// Timing overrides the default timing. A zero field means the default value.
	Timing Timing
}

// Timing contains the delays and timeouts.
type Timing struct {
	// MinBackoff and MaxBackoff bound the delay between two attempts and between two polls.
	MinBackoff, MaxBackoff time.Duration
	// RequestTimeout is the timeout for a request to a broker.
	RequestTimeout time.Duration
	// RetryTimeout is how long an operation is retried before it is marked as failed.
	RetryTimeout time.Duration
	// RelistInterval is the interval between two catalog fetches.
	RelistInterval time.Duration
	// RecheckInterval is the interval between two checks of an object that is waiting for another
	// object.
	RecheckInterval time.Duration
	// AbandonDelay is the delay after which the instances and bindings in a deleted project are
	// abandoned if their broker does not exist.
	AbandonDelay time.Duration
}

func (t Timing) withDefaults() Timing {
	for value, otherwise := range map[*time.Duration]time.Duration{
		&t.MinBackoff: time.Second, &t.MaxBackoff: 20 * time.Minute, &t.RequestTimeout: time.Minute,
		&t.RetryTimeout: 7 * 24 * time.Hour, &t.RelistInterval: 24 * time.Hour, &t.RecheckInterval: time.Minute,
		&t.AbandonDelay: 10 * time.Minute,
	} {
		if *value == 0 {
			*value = otherwise
		}
	}
	return t
}

// Name returns the component's name.
func (*Controllers) Name() string { return "service-catalog" }

// reconciler reconciles objects of all kinds in the API group.
type reconciler struct {
	kube     kubernetes.Interface
	client   *catalogclient.Client
	config   *rest.Config
	loopback http.RoundTripper
	dialer   *outbound.Dialer
	domain   string
	secret   []byte
	timing   Timing
	recorder events.EventRecorder
	schedule *schedule
	cluster  clusterID
	requests requests

	clusterBrokers, brokers, clusterClasses, classes cache.SharedIndexInformer
	clusterPlans, plans, instances, bindings         cache.SharedIndexInformer
}

// Run reconciles objects until ctx is done. It calls ready when the caches have synced.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	client, err := catalogclient.New(c.Deps.Config)
	if err != nil {
		return err
	}
	loopback, err := rest.TransportFor(c.Deps.Config)
	if err != nil {
		return fmt.Errorf("create transport for built-in brokers: %w", err)
	}
	recorder, shutdown := controller.Recorder(ctx, c.Deps.Kube, client.Scheme, "service-catalog-controller-manager")
	defer shutdown()
	r := &reconciler{
		kube: c.Deps.Kube, client: client, config: c.Deps.Config, loopback: loopback, dialer: c.Dialer, domain: c.Domain, secret: c.Secret,
		timing: c.Timing.withDefaults(), recorder: recorder,
		clusterBrokers: catalogclient.Informer(client.ClusterBrokers(), nil), brokers: catalogclient.Informer(client.Brokers(""), nil),
		clusterClasses: catalogclient.Informer(client.ClusterClasses(), nil), classes: catalogclient.Informer(client.Classes(""), nil),
		clusterPlans: catalogclient.Informer(client.ClusterPlans(), nil), plans: catalogclient.Informer(client.Plans(""), nil),
		instances: catalogclient.Informer(client.Instances(""), trimInstance), bindings: catalogclient.Informer(client.Bindings(""), trimBinding),
	}
	r.schedule = newSchedule(r.timing)
	manager, err := r.manager()
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, informer := range r.informers() {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	return manager.Run(ctx, ready)
}

// trimInstance returns the part of an instance that the controllers read from the cache: the
// metadata that identifies the instance, and the references. The rest is not cached, because there
// can be thousands of instances, and each step reads the complete instance from the API server.
func trimInstance(instance *v1beta1.ServiceInstance) *v1beta1.ServiceInstance {
	trimmed, spec := &v1beta1.ServiceInstance{ObjectMeta: identity(instance)}, &instance.Spec
	trimmed.Spec.ClusterServiceClassRef, trimmed.Spec.ClusterServicePlanRef = spec.ClusterServiceClassRef, spec.ClusterServicePlanRef
	trimmed.Spec.ServiceClassRef, trimmed.Spec.ServicePlanRef = spec.ServiceClassRef, spec.ServicePlanRef
	return trimmed
}

// trimBinding returns the part of a binding that the controllers read from the cache.
func trimBinding(binding *v1beta1.ServiceBinding) *v1beta1.ServiceBinding {
	trimmed := &v1beta1.ServiceBinding{ObjectMeta: identity(binding)}
	trimmed.Spec.InstanceRef = binding.Spec.InstanceRef
	return trimmed
}

func identity(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

func (r *reconciler) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{r.clusterBrokers, r.brokers, r.clusterClasses, r.classes, r.clusterPlans, r.plans, r.instances, r.bindings}
}

const (
	byClass    = "class"    // instances by the class that they refer to
	byInstance = "instance" // bindings by their instance
)

// manager returns the controllers for brokers, instances, bindings, and removed classes and plans.
func (r *reconciler) manager() (controller.Manager, error) {
	if err := r.instances.AddIndexers(cache.Indexers{byClass: func(object any) ([]string, error) {
		return []string{classKey(object.(*v1beta1.ServiceInstance))}, nil
	}}); err != nil {
		return nil, fmt.Errorf("index instances: %w", err)
	}
	ofInstance, err := controller.WatchReferences(r.bindings, byInstance, func(object any) []string {
		binding := object.(*v1beta1.ServiceBinding)
		return []string{binding.Namespace + "/" + binding.Spec.InstanceRef.Name}
	}, r.instances)
	if err != nil {
		return nil, err
	}
	toInstance := controller.Watch{Informer: r.bindings, Keys: func(object any) []controller.Key {
		binding := object.(*v1beta1.ServiceBinding)
		return []controller.Key{{Namespace: binding.Namespace, Name: binding.Spec.InstanceRef.Name}}
	}}
	reads := r.informers()
	backoff := 100 * time.Millisecond
	return controller.Manager{
		{Name: "clusterservicebroker", Watches: []controller.Watch{{Informer: r.clusterBrokers}}, Reads: reads, Reconcile: r.reconcileBroker, MinBackoff: backoff, Workers: workers},
		{Name: "servicebroker", Watches: []controller.Watch{{Informer: r.brokers}}, Reads: reads, Reconcile: r.reconcileBroker, MinBackoff: backoff, Workers: workers},
		{
			Name: "serviceinstance", Reads: reads, Reconcile: r.reconcileInstance, MinBackoff: backoff, Workers: workers,
			Watches: []controller.Watch{
				{Informer: r.instances}, toInstance,
				{Informer: r.clusterClasses, Keys: r.waitingInstances}, {Informer: r.classes, Keys: r.waitingInstances},
				{Informer: r.clusterPlans, Keys: r.waitingInstances}, {Informer: r.plans, Keys: r.waitingInstances},
			},
		},
		{
			Name: "servicebinding", Watches: []controller.Watch{{Informer: r.bindings}, ofInstance}, Reads: reads,
			Reconcile: r.reconcileBinding, MinBackoff: backoff, Workers: workers,
		},
		{Name: "removed-class", Watches: r.removedWatches(), Reads: reads, Reconcile: r.removeUnused, MinBackoff: backoff},
	}, nil
}

// waitingInstances returns the keys of instances whose references are not resolved yet. These
// instances are enqueued when a class or plan changes, because the change might make the references
// resolvable.
func (r *reconciler) waitingInstances(any) (keys []controller.Key) {
	objects, _ := r.instances.GetIndexer().ByIndex(byClass, "") // the index exists
	for _, object := range objects {
		if key, err := cache.ObjectToName(object); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// classKey returns the class that an instance references: a name, or a namespace and name, or "" if
// the reference is not resolved.
func classKey(instance *v1beta1.ServiceInstance) string {
	switch {
	case instance.Spec.ClusterServiceClassRef != nil && instance.Spec.ClusterServicePlanRef != nil:
		return instance.Spec.ClusterServiceClassRef.Name
	case instance.Spec.ServiceClassRef != nil && instance.Spec.ServicePlanRef != nil:
		return instance.Namespace + "/" + instance.Spec.ServiceClassRef.Name
	}
	return ""
}

// emit records an event for an object. kind is the event type. The default is Normal.
func (r *reconciler) emit(object metav1.Object, kind, reason, message string) {
	eventType := corev1.EventTypeNormal
	if kind != "" {
		eventType = kind
	}
	switch typed := object.(type) {
	case *v1beta1.ServiceInstance:
		r.recorder.Event(typed, eventType, reason, message)
	case *v1beta1.ServiceBinding:
		r.recorder.Event(typed, eventType, reason, message)
	case *v1beta1.ClusterServiceBroker:
		r.recorder.Event(typed, eventType, reason, message)
	case *v1beta1.ServiceBroker:
		r.recorder.Event(typed, eventType, reason, message)
	}
}
