package idle

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cli/objects"
)

// resource returns the core group's resource with the given plural name.
func resource(name string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(name)
}

// service is a service to idle. Because OpenShift 3.11 idles Endpoints, an Endpoints object without
// a Service is also treated as a service.
type service struct {
	namespace, name string
	object          *corev1.Service   // nil for Endpoints without a Service
	endpoints       *corev1.Endpoints // nil if there is a Service
}

func ofService(s *corev1.Service) service {
	return service{namespace: s.Namespace, name: s.Name, object: s}
}

func ofEndpoints(e *corev1.Endpoints) service {
	return service{namespace: e.Namespace, name: e.Name, endpoints: e}
}

// resources returns the resources of the objects that `oc idle` marks as idle.
func (s service) resources() []schema.GroupVersionResource {
	if s.object == nil {
		return []schema.GroupVersionResource{resource("endpoints")}
	}
	return []schema.GroupVersionResource{resource("endpoints"), resource("services")}
}

// getService returns the Service with the given name. If no such Service exists, it returns the
// Endpoints.
func (o *command) getService(ctx context.Context, namespace, name string) (service, error) {
	object, err := objects.Get[corev1.Service](ctx, o.client, resource("services"), namespace, name)
	if err == nil {
		return ofService(object), nil
	}
	if !apierrors.IsNotFound(err) {
		return service{}, err
	}
	endpoints, endpointsErr := objects.Get[corev1.Endpoints](ctx, o.client, resource("endpoints"), namespace, name)
	if endpointsErr != nil {
		return service{}, err
	}
	return ofEndpoints(endpoints), nil
}

// listServices returns the Services that match the selector. It also returns matching Endpoints
// that have no Service but refer to pods. An empty namespace means all namespaces.
func (o *command) listServices(ctx context.Context, namespace string) (all []service, err error) {
	options := metav1.ListOptions{LabelSelector: o.selector}
	services, err := objects.List[corev1.Service](ctx, o.client, resource("services"), namespace, options)
	if err != nil {
		return nil, err
	}
	endpoints, err := objects.List[corev1.Endpoints](ctx, o.client, resource("endpoints"), namespace, options)
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for i, object := range services {
		served[object.Namespace+"/"+object.Name] = true
		if len(object.Spec.Selector) > 0 {
			all = append(all, ofService(&services[i]))
		}
	}
	for i, object := range endpoints {
		if !served[object.Namespace+"/"+object.Name] && len(podNames(&endpoints[i])) > 0 {
			all = append(all, ofEndpoints(&endpoints[i]))
		}
	}
	return all, nil
}

// podNames returns the names of the pods in an Endpoints object.
func podNames(endpoints *corev1.Endpoints) (names []string) {
	for _, subset := range endpoints.Subsets {
		for _, address := range append(subset.Addresses, subset.NotReadyAddresses...) {
			if target := address.TargetRef; target != nil && target.Kind == "Pod" {
				names = append(names, target.Name)
			}
		}
	}
	return names
}

// pods returns the pods of a service. It returns an error if the service cannot be idled.
func (o *command) pods(ctx context.Context, s service) (pods []corev1.Pod, err error) {
	if s.object != nil {
		switch {
		case len(s.object.Spec.Selector) == 0:
			return nil, errors.New("it selects no pods")
		case s.object.Spec.ClusterIP == corev1.ClusterIPNone:
			return nil, errors.New("it has no cluster IP address, so connections cannot wait until its pods run")
		}
		return objects.List[corev1.Pod](ctx, o.client, resource("pods"), s.namespace,
			metav1.ListOptions{LabelSelector: labels.SelectorFromSet(s.object.Spec.Selector).String()})
	}
	for _, name := range podNames(s.endpoints) {
		pod, err := objects.Get[corev1.Pod](ctx, o.client, resource("pods"), s.namespace, name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, *pod)
	}
	return pods, nil
}
