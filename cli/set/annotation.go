package set

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// triggerAnnotation is the annotation on workloads that contains the workload's image triggers in
// JSON.
const triggerAnnotation = "image.openshift.io/triggers"

// containerOf matches a field path such as spec.template.spec.containers[?(@.name=="web")].image.
// Its groups capture the name or the index of the container.
var containerOf = regexp.MustCompile(`ontainers\[(?:\?\(@\.name\s*==\s*["']([^"']+)["']\)|(\d+))\]\.image$`)

// workload returns the resource of an object that can have a trigger annotation, the path to the
// object's pod spec, and the object's metadata. For other kinds, the metadata is nil.
func workload(object runtime.Object) (resource, template string, existing metav1.Object) {
	switch o := object.(type) {
	case *kubeappsv1.Deployment:
		return "deployments", "spec.template.spec", o
	case *kubeappsv1.StatefulSet:
		return "statefulsets", "spec.template.spec", o
	case *kubeappsv1.DaemonSet:
		return "daemonsets", "spec.template.spec", o
	case *batchv1.CronJob:
		return "cronjobs", "spec.jobTemplate.spec.template.spec", o
	}
	return "", "", nil
}

// annotationTriggers parses the triggers in a workload's annotation, and keeps unknown fields. For
// a Deployment, a disabled config change trigger means that the Deployment is paused.
func annotationTriggers(object runtime.Object) (*definition, error) {
	resource, template, head := workload(object)
	if head == nil {
		return nil, errors.New("only deployment configs, build configs, deployments, stateful sets, daemon sets and cron jobs support triggers")
	}
	d := &definition{name: resource + "/" + head.GetName(), namespace: head.GetNamespace(), alwaysConfig: true, checkContainers: hasContainers(object)}
	deployment, _ := object.(*kubeappsv1.Deployment)
	if deployment != nil {
		d.alwaysConfig, d.config = false, !deployment.Spec.Paused
	}
	var entries []map[string]any
	if text := head.GetAnnotations()[triggerAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &entries); err != nil {
			return nil, fmt.Errorf("read annotation %q: %w", triggerAnnotation, err)
		}
	}
	for _, entry := range entries {
		from, _ := entry["from"].(map[string]any)
		text := func(in map[string]any, key string) string { value, _ := in[key].(string); return value }
		paused, _ := entry["paused"].(bool)
		read := imageTrigger{auto: !paused, annotation: entry}
		read.from = corev1.ObjectReference{Kind: text(from, "kind"), Name: text(from, "name"), Namespace: text(from, "namespace")}
		if parts := containerOf.FindStringSubmatch(text(entry, "fieldPath")); parts != nil {
			read.containers = parts[1] + parts[2]
		}
		d.images = append(d.images, read)
	}
	d.store = func(d *definition) error {
		text, err := annotationText(object, template, d)
		if err != nil {
			return err
		}
		annotations := head.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[triggerAnnotation] = text; len(d.images) == 0 {
			delete(annotations, triggerAnnotation)
		}
		head.SetAnnotations(annotations)
		if deployment != nil {
			deployment.Spec.Paused = !d.config
		}
		return nil
	}
	return d, nil
}

// annotationText returns the content of the annotation, with one entry per container.
func annotationText(object runtime.Object, template string, d *definition) (string, error) {
	var entries []map[string]any
	for _, trigger := range d.images {
		if entry := trigger.annotation; entry != nil {
			entries = append(entries, paused(entry, trigger.auto))
			continue
		}
		from := map[string]any{"kind": trigger.from.Kind, "name": trigger.from.Name}
		if trigger.from.Namespace != d.namespace {
			from["namespace"] = trigger.from.Namespace
		}
		_, err := polymorphichelpers.UpdatePodSpecForObjectFn(object, func(spec *corev1.PodSpec) error {
			for name := range strings.SplitSeq(trigger.containers, ",") {
				field, _ := containerField(spec, name)
				path := fmt.Sprintf(`%s.%s[?(@.name=="%s")].image`, template, field, name)
				entries = append(entries, paused(map[string]any{"from": from, "fieldPath": path}, trigger.auto))
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(entries)
	return string(text), err
}

func paused(entry map[string]any, auto bool) map[string]any {
	if delete(entry, "paused"); !auto {
		entry["paused"] = true
	}
	return entry
}
