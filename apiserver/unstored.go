package apiserver

import "k8s.io/apimachinery/pkg/runtime"

// Unstored is the common part of resources that are not stored: views of other objects, and
// actions. T is a pointer to the wire type.
type Unstored[T runtime.Object] struct {
	// Singular is the singular name of the resource.
	Singular string
	// Namespaced is true for a namespaced resource and false for a cluster-scoped resource.
	Namespaced bool
}

// New creates an empty object.
func (Unstored[T]) New() runtime.Object { return newObject[T]() }

// Destroy is a no-op, because the resource has no store.
func (Unstored[T]) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (u Unstored[T]) NamespaceScoped() bool { return u.Namespaced }

// GetSingularName implements rest.SingularNameProvider.
func (u Unstored[T]) GetSingularName() string { return u.Singular }
