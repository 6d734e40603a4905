// Package unidle wakes idle services: when an event says that somebody connects to one, what `oc idle` scaled down is scaled up to what it was, and the
// annotations go.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, idling applications; the annotations and the event are those of its
// unidling controller.
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
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/idling"
)

// Services is the part that wakes services.
type Services struct {
	// Client is a connection with every right.
	Client *rest.Config
}

// Name is the part's name.
func (*Services) Name() string { return "unidling" }

// firstRetry is the delay after the first failure, mostly a conflict with another writer.
const firstRetry = 50 * time.Millisecond

// Run wakes until ctx ends; ready is called when all events are known.
func (s *Services) Run(ctx context.Context, ready func()) error {
	kube, err := kubernetes.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for idle services: %w", err)
	}
	objects, err := dynamic.NewForConfig(s.Client)
	if err != nil {
		return fmt.Errorf("connect for idle services: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = "reason=" + idling.NeedPods
	}))
	events := factory.Core().V1().Events()
	l := &loop{objects, events.Lister()}
	set := controller.Set{{
		Name: "unidle", Watches: []controller.Watch{{Informer: events.Informer(), Keys: services}}, Reconcile: l.reconcile, Retry: firstRetry,
	}}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	return set.Run(ctx, ready)
}

// services are those that an event speaks of.
func services(object any) []controller.Key {
	event, ok := object.(*corev1.Event)
	if !ok || event.InvolvedObject.Kind != "Service" {
		return nil
	}
	return []controller.Key{cache.NewObjectName(event.Namespace, event.InvolvedObject.Name)}
}

// loop is what wakes one service.
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
	if needed, err := l.neededSince(key, since); err != nil || !needed {
		return err
	}
	targets, err := idling.Read(service.GetAnnotations())
	if err != nil {
		return err
	}
	var problems []error
	for _, target := range targets {
		problems = append(problems, l.wake(ctx, key.Namespace, target))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return l.awake(ctx, key.Namespace, targets)
}

// awake takes the annotations from every service whose pods are those of the targets, or some of them.
func (l *loop) awake(ctx context.Context, namespace string, targets []idling.Target) error {
	services := l.objects.Resource(corev1.SchemeGroupVersion.WithResource("services")).Namespace(namespace)
	endpoints := l.objects.Resource(corev1.SchemeGroupVersion.WithResource("endpoints")).Namespace(namespace)
	list, err := services.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list services: %w", err)
	}
	var problems []error
	for _, service := range list.Items {
		if _, idle := idling.Since(service.GetAnnotations()); !idle {
			continue
		}
		own, err := idling.Read(service.GetAnnotations())
		other := func(target idling.Target) bool {
			return !slices.ContainsFunc(targets, func(t idling.Target) bool {
				return t.Kind == target.Kind && t.Group == target.Group && t.Name == target.Name
			})
		}
		if err != nil || slices.ContainsFunc(own, other) {
			continue
		}
		err = forget(ctx, endpoints, service.GetName())
		if err == nil { // the service is last: while it is idle, all of this is tried again
			err = forget(ctx, services, service.GetName())
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// neededSince says whether an event is not older than a time; events have whole seconds.
func (l *loop) neededSince(key controller.Key, since time.Time) (bool, error) {
	all, err := l.events.Events(key.Namespace).List(labels.Everything())
	for _, event := range all {
		if event.InvolvedObject.Kind == "Service" && event.InvolvedObject.Name == key.Name && !event.LastTimestamp.Time.Before(since) {
			return true, err
		}
	}
	return false, err
}

// scalable are the resources that are scaled up. A service's annotation names them, which whoever may edit the service writes.
var scalable = map[schema.GroupKind]schema.GroupVersionResource{
	{Group: appsv1.GroupName, Kind: "DeploymentConfig"}: appsv1.GroupVersion.WithResource("deploymentconfigs"),
	{Kind: "DeploymentConfig"}:                          appsv1.GroupVersion.WithResource("deploymentconfigs"),
	{Kind: "ReplicationController"}:                     corev1.SchemeGroupVersion.WithResource("replicationcontrollers"),
	{Group: kubeappsv1.GroupName, Kind: "Deployment"}:   kubeappsv1.SchemeGroupVersion.WithResource("deployments"),
	{Group: "extensions", Kind: "Deployment"}:           kubeappsv1.SchemeGroupVersion.WithResource("deployments"),
	{Group: kubeappsv1.GroupName, Kind: "ReplicaSet"}:   kubeappsv1.SchemeGroupVersion.WithResource("replicasets"),
	{Group: kubeappsv1.GroupName, Kind: "StatefulSet"}:  kubeappsv1.SchemeGroupVersion.WithResource("statefulsets"),
}

// wake scales a target up to what its own annotation says, so that whoever may only edit the service cannot scale what is not idle.
func (l *loop) wake(ctx context.Context, namespace string, target idling.Target) error {
	resource, known := scalable[schema.GroupKind{Group: target.Group, Kind: target.Kind}]
	if !known {
		return nil
	}
	client := l.objects.Resource(resource).Namespace(namespace)
	object, err := client.Get(ctx, target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wake %s %q: %w", target.Kind, target.Name, err)
	}
	annotations := object.GetAnnotations()
	if _, idle := idling.Since(annotations); !idle {
		return nil
	}
	patch := withoutAnnotations(object)
	replicas, err := strconv.ParseInt(annotations[idling.PreviousScale], 10, 32)
	now, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas") // 0 where there is none
	if err == nil && replicas > 0 && now == 0 {
		patch["spec"] = map[string]any{"replicas": replicas}
	}
	if err := apply(ctx, client, target.Name, patch); err != nil {
		return fmt.Errorf("wake %s %q: %w", target.Kind, target.Name, err)
	}
	return nil
}

// forget takes the annotations of an idle service from an object.
func forget(ctx context.Context, client dynamic.ResourceInterface, name string) error {
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
	return apply(ctx, client, name, withoutAnnotations(object))
}

// withoutAnnotations is a patch of the object as it was read, and no later one, that takes the annotations of idling away.
func withoutAnnotations(object *unstructured.Unstructured) map[string]any {
	return map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(),
		"annotations":     map[string]any{idling.IdledAt: nil, idling.Targets: nil, idling.PreviousScale: nil},
	}}
}

func apply(ctx context.Context, client dynamic.ResourceInterface, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}
