// Package endpoints deletes orphaned endpoints. These are endpoints that a Kubernetes controller
// has created but no longer updates, because their service has no selector or does not exist.
//
// Kubernetes does not delete orphaned endpoints. After their pods have ended, their addresses can
// be assigned to other pods, even in other projects. Without this package, the service and its
// routes would then lead to these pods.
package endpoints

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	rules "github.com/slipway-platform/slipway/internal/endpoints"
)

// Orphans is the component that deletes orphaned Endpoints and EndpointSlices.
type Orphans struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
}

// Name returns the component's name.
func (*Orphans) Name() string { return "orphaned-endpoints" }

// byService is the name of the index that maps services to their Endpoints or EndpointSlices.
const byService = "service"

// kinds lists the resources whose orphans are deleted. service returns the name of an object's
// service, or "" if a user has created the object.
var kinds = []struct {
	resource schema.GroupVersionResource
	service  func(object metav1.Object) string
}{
	{discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), func(object metav1.Object) string {
		if object.GetLabels()[discoveryv1.LabelManagedBy] != rules.SliceController {
			return ""
		}
		return object.GetLabels()[discoveryv1.LabelServiceName]
	}},
	{corev1.SchemeGroupVersion.WithResource("endpoints"), func(object metav1.Object) string {
		if object.GetLabels()[rules.ManagedBy] != rules.Controller {
			return ""
		}
		return object.GetName()
	}},
}

// Run deletes orphaned endpoints until ctx is done. It calls ready when its caches have synced.
func (o *Orphans) Run(ctx context.Context, ready func()) error {
	services := o.Deps.Informers.Core().V1().Services()
	l := &loop{kube: o.Deps.Kube, metadata: o.Deps.Metadata, services: services.Lister(), caches: map[schema.GroupVersionResource]cache.Indexer{}}
	watches := []controller.Watch{{Informer: services.Informer(), Changed: func(old, new any) bool {
		return hasController(old.(*corev1.Service)) != hasController(new.(*corev1.Service))
	}}}
	for _, kind := range kinds {
		informer := o.Deps.MetadataInformers.ForResource(kind.resource).Informer()
		keys := func(object any) (keys []controller.Key) {
			if of, ok := object.(metav1.Object); ok && kind.service(of) != "" {
				keys = append(keys, controller.Key{Namespace: of.GetNamespace(), Name: kind.service(of)})
			}
			return keys
		}
		// A previous call of Run might have added the index, because the informers are shared.
		if informer.GetIndexer().GetIndexers()[byService] == nil {
			err := informer.AddIndexers(cache.Indexers{byService: func(object any) (names []string, _ error) {
				for _, key := range keys(object) {
					names = append(names, key.String())
				}
				return names, nil
			}})
			if err != nil {
				return fmt.Errorf("index %s: %w", kind.resource.Resource, err)
			}
		}
		l.caches[kind.resource] = informer.GetIndexer()
		watches = append(watches, controller.Watch{Informer: informer, Keys: keys})
	}
	o.Deps.Start()
	return controller.Manager{{Name: "orphaned endpoints", Workers: 2, Watches: watches, Reconcile: l.reconcile}}.Run(ctx, ready)
}

// hasController reports whether a Kubernetes controller updates a service's endpoints.
func hasController(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// loop reconciles services.
type loop struct {
	kube     kubernetes.Interface
	metadata metadata.Interface
	services corelisters.ServiceLister
	caches   map[schema.GroupVersionResource]cache.Indexer
}

func (l *loop) reconcile(ctx context.Context, key controller.Key) error {
	if service, err := l.services.Services(key.Namespace).Get(key.Name); err == nil && hasController(service) {
		return nil
	}
	orphans := map[schema.GroupVersionResource][]any{}
	for resource, indexer := range l.caches {
		objects, err := indexer.ByIndex(byService, key.String())
		if err != nil {
			return fmt.Errorf("find %s: %w", resource.Resource, err)
		}
		if len(objects) > 0 {
			orphans[resource] = objects
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	// Read the service from the API server, because the cache might not contain a new service or
	// its selector yet.
	service, err := l.kube.CoreV1().Services(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) || err == nil && hasController(service) {
		return err
	}
	var errs []error
	for resource, objects := range orphans {
		for _, object := range objects {
			errs = append(errs, l.delete(ctx, resource, object.(metav1.Object)))
		}
	}
	return errors.Join(errs...)
}

func (l *loop) delete(ctx context.Context, resource schema.GroupVersionResource, object metav1.Object) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))}
	err := l.metadata.Resource(resource).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", resource.Resource, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
