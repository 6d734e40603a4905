package project

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-platform/slipway/apiserver"
)

// writer creates objects of any kind through the API server. It has all permissions. This is safe,
// because only the administrator can change the template that defines the objects.
type writer struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func newWriter(deps apiserver.Deps) *writer {
	return &writer{deps.Dynamic, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(deps.Kube.Discovery()))}
}

func (w *writer) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return w.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// create creates an object. If the object's kind is namespaced, create creates it in the namespace.
func (w *writer) create(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find resource of %s: %w", kind, err)
	}
	var resource dynamic.ResourceInterface = w.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(namespace)
		resource = w.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Create(ctx, object, metav1.CreateOptions{})
	return err
}

func (w *writer) remove(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	return w.client.Resource(resource).Delete(ctx, name, metav1.DeleteOptions{})
}
