package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/slipway-platform/slipway/controller"
)

// manager is the field manager for server-side apply.
const manager = "slipway-bootstrap"

// onceAnnotation marks objects that are created if they do not exist but never updated, so
// administrators' changes are kept.
const onceAnnotation = "bootstrap.slipway.io/once"

// contentAnnotation records a hash of an object's default content. With this annotation, apply also
// restores an object that another version of Slipway has written with additional fields. A
// comparison of the fields alone does not detect additional fields.
const contentAnnotation = "bootstrap.slipway.io/content"

// setContent sets contentAnnotation, unless the object has onceAnnotation.
func setContent(object *unstructured.Unstructured) error {
	annotations := object.GetAnnotations()
	if annotations[onceAnnotation] != "" {
		return nil
	}
	content, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	sum := sha256.Sum256(content)
	annotations[contentAnnotation] = hex.EncodeToString(sum[:8])
	object.SetAnnotations(annotations)
	return nil
}

// applier applies objects to the cluster with server-side apply.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(deps *controller.Deps) *applier {
	return &applier{deps.Dynamic, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(deps.Kube.Discovery()))}
}

// apply applies objects concurrently. It first applies the kinds that other objects require:
// namespaces and custom resource definitions. It returns the objects whose kind the API server does
// not serve yet.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) (remaining []*unstructured.Unstructured, err error) {
	var first, others []*unstructured.Unstructured
	for _, object := range objects {
		if kind := object.GetKind(); kind == "Namespace" || kind == "CustomResourceDefinition" {
			first = append(first, object)
		} else {
			others = append(others, object)
		}
	}
	for _, objects := range [][]*unstructured.Unstructured{first, others} {
		unserved, err := a.applyTogether(ctx, objects)
		if err != nil {
			return nil, err
		}
		remaining = append(remaining, unserved...)
	}
	return remaining, nil
}

// applyTogether applies objects concurrently, in no particular order.
func (a *applier) applyTogether(ctx context.Context, objects []*unstructured.Unstructured) (remaining []*unstructured.Unstructured, err error) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(writers)
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			remaining = append(remaining, object)
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("find resource of %s: %w", kind, err), work.Wait())
		}
		var resource dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
		}
		work.Go(func() error {
			if err := apply(ctx, resource, object); err != nil {
				return fmt.Errorf("apply %s %q: %w", kind.Kind, object.GetName(), err)
			}
			return nil
		})
	}
	return remaining, work.Wait()
}

// insist retries until it has applied all objects. Retries are necessary because the API server
// serves a kind only about a second after the kind's definition is created.
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
			slog.Warn("cannot create all default objects yet", "count", len(objects), "error", err)
		}
	}
}

// apply applies an object unless the stored object already has the same content. If an object has
// onceAnnotation, apply only creates it if it does not exist, and never updates it.
func apply(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	// Read the object first, because a read takes a tenth of the time of a write. This saves time
	// on a start that changes nothing.
	stored, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	once := object.GetAnnotations()[onceAnnotation] != ""
	switch {
	case err == nil && (once || contains(stored.Object, object.Object)):
		return nil
	case once:
		_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// contains reports whether a stored value contains all of a default value's content. Stored maps
// can have more keys, such as fields that the server defaulted.
func contains(stored, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		fields, ok := stored.(map[string]any)
		if !ok {
			return false
		}
		for key, field := range value {
			if storedField, exists := fields[key]; !exists || !contains(storedField, field) {
				return false
			}
		}
		return true
	case []any:
		items, ok := stored.([]any)
		return ok && slices.EqualFunc(items, value, contains)
	default:
		return stored == value
	}
}
