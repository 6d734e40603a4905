package imagecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/controller"
)

// Annotation is the workload annotation that lists the workload's triggers as JSON.
const Annotation = "image.openshift.io/triggers"

// trigger is an entry of the annotation: a tag, and the field that is set to the tag's newest
// image.
type trigger struct {
	From struct {
		Kind      string `json:"kind"`
		Name      string `json:"name"` // in the form <stream>:<tag>
		Namespace string `json:"namespace,omitempty"`
	} `json:"from"`
	FieldPath string `json:"fieldPath"`
	Paused    bool   `json:"paused,omitempty"`
}

// workload describes a kind that supports triggers.
type workload struct {
	resource schema.GroupVersionResource
	template []string // path of the kind's pod template
	// conditions indicates whether the kind's status contains conditions and the kind's own
	// controller keeps unknown conditions.
	conditions bool
}

func workloads() []workload {
	apps := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
	}
	template := []string{"spec", "template"}
	return []workload{
		{apps("deployments"), template, true}, {apps("statefulsets"), template, false}, {apps("daemonsets"), template, true},
		{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, []string{"spec", "jobTemplate", "spec", "template"}, false},
	}
}

// triggerController sets the images in objects of one kind according to their triggers.
type triggerController struct {
	workload
	streams cache.SharedIndexInformer
	heads   cache.SharedIndexInformer // metadata of the objects
	objects dynamic.Interface
	check   pull.Check
	events  record.EventRecorder
	// reports holds the keys of objects that have a condition about a missing permission, so that
	// the condition is removed when the triggers are removed.
	reports sync.Map
}

// byStream is the name of the index that maps streams, as "namespace/name", to the objects whose
// triggers refer to them.
const byStream = "streams"

func (t *triggerController) controller() (controller.Controller, error) {
	changes, err := controller.WatchReferences(t.heads, byStream, streamsOf, t.streams)
	if err != nil {
		return controller.Controller{}, fmt.Errorf("watch image streams of %s: %w", t.resource.Resource, err)
	}
	return controller.Controller{
		Name: "image-trigger-" + t.resource.Resource,
		Watches: []controller.Watch{
			{Informer: t.heads, Changed: func(old, new any) bool {
				return annotationOf(old) != annotationOf(new) || generationOf(old) != generationOf(new)
			}},
			changes,
		},
		Workers:   4,
		Reconcile: t.reconcile,
	}, nil
}

func annotationOf(object any) string {
	head, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return ""
	}
	return head.Annotations[Annotation]
}

func generationOf(object any) int64 {
	head, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return 0
	}
	return head.Generation
}

// streamsOf returns the streams that an object's triggers refer to, as namespace/name.
func streamsOf(object any) (names []string) {
	head, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	triggers, _ := triggersOf(head.Annotations) // reconcile reports errors
	for _, trigger := range triggers {
		names = append(names, trigger.stream(head.Namespace).String())
	}
	return names
}

// triggersOf decodes the triggers in an object's annotations. It returns nil if the annotation is
// missing.
func triggersOf(annotations map[string]string) (triggers []trigger, err error) {
	text := annotations[Annotation]
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &triggers); err != nil {
		return nil, fmt.Errorf("parse annotation %q: %w", Annotation, err)
	}
	return triggers, nil
}

// stream returns the key of the stream that a trigger refers to. namespace is the default
// namespace.
func (t trigger) stream(namespace string) controller.Key {
	if t.From.Namespace != "" {
		namespace = t.From.Namespace
	}
	name, _, _ := strings.Cut(t.From.Name, ":")
	return controller.Key{Namespace: namespace, Name: name}
}

// reconcile sets the newest images in an object with a single update.
func (t *triggerController) reconcile(ctx context.Context, key controller.Key) error {
	object, ok, err := t.heads.GetIndexer().GetByKey(key.String())
	if err != nil || !ok {
		return err
	}
	triggers, err := triggersOf(object.(*metav1.PartialObjectMetadata).Annotations)
	if err != nil {
		slog.Warn("cannot apply image trigger", "resource", t.resource.Resource, "object", key.String(), "error", err)
		return nil // a change of the annotation causes a retry
	}
	triggers = slices.DeleteFunc(triggers, func(candidate trigger) bool { return candidate.Paused || candidate.From.Kind != "ImageStreamTag" })
	if _, ok := t.reports.Load(key); len(triggers) == 0 && !ok {
		return nil
	}
	client := t.objects.Resource(t.resource).Namespace(key.Namespace)
	forbidden := ""
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := client.Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var allowed []trigger
		if allowed, forbidden, err = t.allowed(ctx, current, triggers); err != nil {
			return err
		}
		if current, err = t.report(ctx, client, current, forbidden); err != nil || current == nil {
			return err
		}
		if !t.change(current, allowed) {
			return nil
		}
		_, err = client.Update(ctx, current, metav1.UpdateOptions{FieldManager: "image-trigger"})
		return err
	})
	if err != nil {
		return err
	}
	if forbidden != "" {
		t.reports.Store(key, true)
		return controller.RequeueAfter(pull.RecheckInterval)
	}
	t.reports.Delete(key)
	return nil
}

// change sets images in an object, and reports whether the object has changed.
func (t *triggerController) change(object *unstructured.Unstructured, triggers []trigger) (changed bool) {
	for _, trigger := range triggers {
		_, tag, _ := strings.Cut(trigger.From.Name, ":")
		image := pull.LatestSpec(stream(t.streams, trigger.stream(object.GetNamespace())), tag)
		if image != "" && t.set(object, trigger.FieldPath, image) {
			changed = true
		}
	}
	return changed
}

// fieldPath matches paths such as spec.template.spec.containers[?(@.name=="web")].image or
// ...containers[0].image.
var fieldPath = regexp.MustCompile(`\.(containers|initContainers)\[(?:(\d+)|\?\(@\.name\s*==\s*["']([^"']+)["']\))\]\.image$`)

// set sets the image of the container that path selects, and reports whether the image has changed.
func (t *triggerController) set(object *unstructured.Unstructured, path, image string) bool {
	parts := fieldPath.FindStringSubmatch(path)
	if parts == nil {
		return false
	}
	at := append(slices.Clone(t.template), "spec", parts[1])
	containers, ok, err := unstructured.NestedSlice(object.Object, at...)
	if err != nil || !ok {
		return false
	}
	for i, entry := range containers {
		container, ok := entry.(map[string]any)
		if !ok || parts[2] != strconv.Itoa(i) && (parts[3] == "" || container["name"] != parts[3]) {
			continue
		}
		if container["image"] == image {
			return false
		}
		container["image"] = image
		return unstructured.SetNestedSlice(object.Object, containers, at...) == nil
	}
	return false
}
