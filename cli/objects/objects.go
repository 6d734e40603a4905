// Package objects reads a cluster's objects into Go types with a dynamic client.
package objects

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Get reads one object. namespace is empty for a cluster-scoped resource. Get returns the server's
// errors unchanged.
func Get[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string) (*T, error) {
	object, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return read[T](object.Object)
}

// List reads the objects in a namespace. An empty namespace means all namespaces.
func List[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) ([]T, error) {
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	all := make([]T, 0, len(list.Items))
	for _, item := range list.Items {
		one, err := read[T](item.Object)
		if err != nil {
			return nil, err
		}
		all = append(all, *one)
	}
	return all, nil
}

func read[T any](content map[string]any) (*T, error) {
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil, fmt.Errorf("read %T: %w", object, err)
	}
	return object, nil
}
