package bootstrap

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-platform/slipway/controller"
)

// manager is the field manager that applies the objects.
const manager = "slipway-bootstrap"

// onceAnnotation marks objects that are only created if they do not exist. Later changes by an
// administrator stay.
const onceAnnotation = "bootstrap.slipway.io/once"

// applier applies objects to the cluster.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(deps *controller.Deps) *applier {
	return &applier{deps.Dynamic, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(deps.Kube.Discovery()))}
}

// apply applies objects. It returns the objects whose kind the API server does not serve yet.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) (remaining []*unstructured.Unstructured, err error) {
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			remaining = append(remaining, object)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find resource of %s: %w", kind, err)
		}
		var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		if err := apply(ctx, resource, object); err != nil {
			return nil, fmt.Errorf("apply %s %q: %w", kind.Kind, object.GetName(), err)
		}
	}
	return remaining, nil
}

// insist applies objects until the API server serves all of their kinds. The API server serves a
// kind about a second after its definition is created.
func (a *applier) insist(ctx context.Context, objects []*unstructured.Unstructured) {
	const maximum = time.Minute
	for delay := 200 * time.Millisecond; len(objects) > 0; delay = min(2*delay, maximum) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		a.mapper.Reset()
		remaining, err := a.apply(ctx, objects)
		if err == nil {
			objects = remaining
		}
		if delay == maximum && ctx.Err() == nil {
			slog.Warn("default objects are missing", "count", len(objects), "error", err)
		}
	}
}

// apply applies an object. If the object has onceAnnotation, apply only creates it if it is
// missing.
func apply(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	if object.GetAnnotations()[onceAnnotation] == "" {
		_, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
	_, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
