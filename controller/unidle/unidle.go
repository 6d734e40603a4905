// Package unidle scales up the workloads of idle services. When an event reports a connection to an
// idle service, unidle restores the replicas that `oc idle` has removed, and removes the idling
// annotations.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications. The
// annotations and the event match those of OpenShift's unidling controller.
package unidle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/idling"
)

// Services is the component that scales up the workloads of idle services.
type Services struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
}

// Name returns the component's name.
func (*Services) Name() string { return "unidling" }

// minBackoff is short because most errors are conflicts with another writer.
const minBackoff = 50 * time.Millisecond

// Run scales up the workloads of idle services until ctx is done. It calls ready when the cache
// contains all events.
func (s *Services) Run(ctx context.Context, ready func()) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.Deps.Kube, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = "reason=" + idling.NeedPods
	}))
	events := factory.Core().V1().Events()
	l := &loop{s.Deps.Dynamic, events.Lister()}
	set := controller.Manager{{
		Name: "unidle", Watches: []controller.Watch{{Informer: events.Informer(), Keys: serviceKeys}}, Reconcile: l.reconcile, MinBackoff: minBackoff,
	}}
	defer controller.Start(ctx, factory)()
	return set.Run(ctx, ready)
}

// serviceKeys returns the key of the service that an event is about.
func serviceKeys(object any) []controller.Key {
	event, ok := object.(*corev1.Event)
	if !ok || event.InvolvedObject.Kind != "Service" {
		return nil
	}
	return []controller.Key{cache.NewObjectName(event.Namespace, event.InvolvedObject.Name)}
}

// loop reconciles services.
type loop struct {
	objects dynamic.Interface
	events  corelisters.EventLister
}

func (l *loop) reconcile(ctx context.Context, key controller.Key) error {
	resource := l.objects.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(key.Namespace)
	service, err := resource.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	since, idle := idling.Since(service.GetAnnotations())
	if !idle {
		return nil
	}
	if needed, err := l.isNeeded(key, since); err != nil || !needed {
		return err
	}
	targets, err := idling.Read(service.GetAnnotations())
	if err != nil {
		return err
	}
	var errs []error
	for _, target := range targets {
		errs = append(errs, l.scaleUp(ctx, key.Namespace, target))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return l.removeMarks(ctx, key.Namespace, targets)
}

// removeMarks removes the idling annotations from each service whose targets are all among the
// given targets.
func (l *loop) removeMarks(ctx context.Context, namespace string, targets []idling.Target) error {
	services := l.objects.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(namespace)
	endpoints := l.objects.Resource(corev1.SchemeGroupVersion.WithResource("endpoints")).Namespace(namespace)
	list, err := services.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	var errs []error
	for _, service := range list.Items {
		if _, idle := idling.Since(service.GetAnnotations()); !idle {
			continue
		}
		ownTargets, err := idling.Read(service.GetAnnotations())
		isOther := func(target idling.Target) bool {
			return !slices.ContainsFunc(targets, func(t idling.Target) bool {
				return t.Kind == target.Kind && t.Group == target.Group && t.Name == target.Name
			})
		}
		if err != nil || slices.ContainsFunc(ownTargets, isOther) {
			continue
		}
		err = removeAnnotations(ctx, endpoints, service.GetName())
		// The service is updated last, so that the service is still idle after an error and is retried.
		if err == nil {
			err = removeAnnotations(ctx, services, service.GetName())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isNeeded reports whether the service has an event that is not older than the given time.
func (l *loop) isNeeded(key controller.Key, since time.Time) (bool, error) {
	events, err := l.events.Events(key.Namespace).List(labels.Everything())
	for _, event := range events {
		if event.InvolvedObject.Kind == "Service" && event.InvolvedObject.Name == key.Name && !isBefore(event, since) {
			return true, err
		}
	}
	return false, err
}

// isBefore reports whether an event is older than the given time. An event without EventTime, for
// example from another proxy, has a resolution of one second.
func isBefore(event *corev1.Event, since time.Time) bool {
	if event.EventTime.IsZero() {
		return event.LastTimestamp.Time.Before(since.Truncate(time.Second))
	}
	return event.EventTime.Time.Before(since)
}

// scalable lists the resources that may be scaled up. The list is necessary because any user who
// can edit a service can write other resources to its annotation.
var scalable = map[schema.GroupKind]schema.GroupVersionResource{
	{Group: appsv1.GroupName, Kind: "DeploymentConfig"}: appsv1.GroupVersion.WithResource("deploymentconfigs"),
	{Kind: "DeploymentConfig"}:                          appsv1.GroupVersion.WithResource("deploymentconfigs"),
	{Kind: "ReplicationController"}:                     corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
	{Group: kubeappsv1.GroupName, Kind: "Deployment"}:   kubeappsv1.SchemeGroupVersion.WithResource("deployments"),
	{Group: "extensions", Kind: "Deployment"}:           kubeappsv1.SchemeGroupVersion.WithResource("deployments"),
	{Group: kubeappsv1.GroupName, Kind: "ReplicaSet"}:   kubeappsv1.SchemeGroupVersion.WithResource("replicasets"),
	{Group: kubeappsv1.GroupName, Kind: "StatefulSet"}:  kubeappsv1.SchemeGroupVersion.WithResource("statefulsets"),
}

// scaleUp restores the replica count that the target's own annotation specifies. It does not use
// the service's annotation, because a user who can edit only the service must not be able to scale
// a target that is not idle.
func (l *loop) scaleUp(ctx context.Context, namespace string, target idling.Target) error {
	resource, ok := scalable[schema.GroupKind{Group: target.Group, Kind: target.Kind}]
	if !ok {
		return nil
	}
	client := l.objects.Resource(resource).Namespace(namespace)
	object, err := client.Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scale up %s %q: %w", target.Kind, target.Name, err)
	}
	annotations := object.GetAnnotations()
	if _, idle := idling.Since(annotations); !idle {
		return nil
	}
	patch := annotationPatch(object)
	replicas, err := strconv.ParseInt(annotations[idling.PreviousScale], 10, 32)
	// The number is 0 if the field is not set.
	current, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err == nil && replicas > 0 && current == 0 {
		patch["spec"] = map[string]any{"replicas": replicas}
	}
	if err := applyPatch(ctx, client, target.Name, patch); err != nil {
		return fmt.Errorf("scale up %s %q: %w", target.Kind, target.Name, err)
	}
	return nil
}

// removeAnnotations removes the idling annotations from an object.
func removeAnnotations(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, idle := idling.Since(object.GetAnnotations()); !idle {
		return nil
	}
	return applyPatch(ctx, client, name, annotationPatch(object))
}

// annotationPatch returns a patch that removes the idling annotations. The server rejects the patch
// if the object has changed since it was read.
func annotationPatch(object *unstructured.Unstructured) map[string]any {
	return map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(),
		"annotations":     map[string]any{idling.IdledAt: nil, idling.Targets: nil, idling.PreviousScale: nil},
	}}
}

func applyPatch(ctx context.Context, client dynamic.ResourceInterface, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}
