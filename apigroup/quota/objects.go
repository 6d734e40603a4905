package quota

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-platform/slipway/apiserver"
)

// objects lists the objects that quotas count.
type objects struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	dynamic dynamic.Interface
	names   metadata.Interface
}

func newObjects(deps apiserver.Deps) (*objects, error) {
	names, err := metadata.NewForConfig(apiserver.Unlimited(deps.Loopback))
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(deps.Kube.Discovery()))
	return &objects{mapper, deps.Dynamic, names}, nil
}

// hasUsage reports whether quotas can limit more than the number of a resource's objects. If so,
// the counter requires complete objects.
func hasUsage(resource schema.GroupResource) bool {
	return slices.Contains([]schema.GroupResource{
		corev1.Resource("pods"), corev1.Resource("services"), corev1.Resource("persistentvolumeclaims"), resourcev1.Resource("resourceclaims"),
	}, resource)
}

// list returns a resource's objects in a namespace: as their Go types if hasUsage is true for the
// resource, and otherwise only their metadata. If the API server does not serve the resource, list
// returns no objects.
func (o *objects) list(ctx context.Context, resource schema.GroupResource, namespace string) ([]runtime.Object, error) {
	version, err := o.mapper.ResourceFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find resource %q: %w", resource, err)
	}
	options := metav1.ListOptions{} // empty options return the current content of the store
	var result []runtime.Object
	if !hasUsage(resource) {
		list, err := o.names.Resource(version).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range list.Items {
			result = append(result, &list.Items[i])
		}
		return result, nil
	}
	list, err := o.dynamic.Resource(version).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	for i := range list.Items {
		typed, err := scheme.Scheme.New(list.Items[i].GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, typed); err != nil {
			return nil, fmt.Errorf("read %s %q: %w", resource, list.Items[i].GetName(), err)
		}
		result = append(result, typed)
	}
	return result, nil
}
