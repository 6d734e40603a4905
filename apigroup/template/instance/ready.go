package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	routev1 "github.com/openshift/api/route/v1"
	templatev1 "github.com/openshift/api/template/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/controller"
)

// waitForReady is the older of two annotations that mark objects that must be ready before an
// instance is ready. The newer annotation is defined in openshift/api.
const waitForReady = "template.openshift.io/wait-for-ready"

// state is an object's readiness.
type state int

const (
	pending state = iota
	ready
	failed
)

// An instance whose objects are not ready is checked again after an interval. The interval is the
// time since the instance began to wait, divided by intervalShare, within the bounds minInterval
// and maxInterval.
const (
	minInterval, maxInterval = time.Second, 30 * time.Second
	intervalShare            = 20
)

// readyTimeout is how long an instance's objects can take to become ready, as in OpenShift 3.
const readyTimeout = time.Hour

// await checks whether the objects that an instance is waiting for are ready.
func (l *reconciler) await(ctx context.Context, instance *templatev1.TemplateInstance) error {
	all, waiting := true, ""
	for _, entry := range instance.Status.Objects {
		if entry.Ref.UID == "" {
			continue // the server did not store the object
		}
		item, err := l.itemOf(entry)
		if err != nil {
			return classify(err)
		}
		name := fmt.Sprintf("%s %q", entry.Ref.Kind, entry.Ref.Name)
		object, err := item.resource(l.objects).Get(ctx, entry.Ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && object.GetUID() != entry.Ref.UID {
			return final(fmt.Errorf("wait for %s: it was deleted", name))
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		if annotations := object.GetAnnotations(); annotations[templatev1.WaitForReadyAnnotation] != "true" && annotations[waitForReady] != "true" {
			continue
		}
		current, err := l.state(ctx, object)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		if current == failed {
			return final(fmt.Errorf("readiness failed on %s %s/%s", entry.Ref.Kind, entry.Ref.Namespace, entry.Ref.Name))
		}
		if reason := createFailure(object); current == pending && reason != "" {
			waiting = fmt.Sprintf("%s cannot create pods: %s", name, reason)
		}
		all = all && current == ready
	}
	if !all {
		elapsed := time.Since(condition(instance, templatev1.TemplateInstanceReady).LastTransitionTime.Time)
		if elapsed > readyTimeout {
			return final(errors.New("timeout while waiting for template instance to be ready"))
		}
		if current := condition(instance, templatev1.TemplateInstanceReady); waiting != "" && current.Message != waiting {
			set(instance, templatev1.TemplateInstanceReady, corev1.ConditionFalse, current.Reason, waiting)
			if err := l.update(ctx, instance); err != nil {
				return err
			}
		}
		return controller.RequeueAfter(min(max(elapsed/intervalShare, minInterval), maxInterval))
	}
	set(instance, templatev1.TemplateInstanceReady, corev1.ConditionTrue, "Created", "")
	return l.update(ctx, instance)
}

// state returns an object's state. Objects of kinds without a known state are always ready.
func (l *reconciler) state(ctx context.Context, object *unstructured.Unstructured) (state, error) {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: buildv1.GroupName, Kind: "Build"}:
		return buildState(object), nil
	case schema.GroupKind{Group: buildv1.GroupName, Kind: "BuildConfig"}:
		return l.buildConfigState(ctx, object)
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "DeploymentConfig"}:
		return rolloutState(object, "NewReplicationControllerAvailable"), nil
	case schema.GroupKind{Group: kubeappsv1.GroupName, Kind: "Deployment"}:
		return rolloutState(object, "NewReplicaSetAvailable"), nil
	case schema.GroupKind{Group: kubeappsv1.GroupName, Kind: "StatefulSet"}:
		return statefulSetState(object), nil
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		return jobState(object), nil
	case schema.GroupKind{Group: routev1.GroupName, Kind: "Route"}:
		return either(text(object, "spec", "host") != "", false), nil
	}
	return ready, nil
}

func either(isReady, hasFailed bool) state {
	switch {
	case isReady:
		return ready
	case hasFailed:
		return failed
	}
	return pending
}

func buildState(object *unstructured.Unstructured) state {
	switch buildv1.BuildPhase(text(object, "status", "phase")) {
	case buildv1.BuildPhaseComplete:
		return ready
	case buildv1.BuildPhaseCancelled, buildv1.BuildPhaseError, buildv1.BuildPhaseFailed:
		return failed
	}
	return pending
}

// buildConfigState returns the state of the configuration's latest build.
func (l *reconciler) buildConfigState(ctx context.Context, object *unstructured.Unstructured) (state, error) {
	version := number(object, "status", "lastVersion")
	if version == 0 {
		return pending, nil
	}
	builds := l.objects.Resource(buildv1.GroupVersion.WithResource("builds")).Namespace(object.GetNamespace())
	build, err := builds.Get(ctx, fmt.Sprintf("%s-%d", object.GetName(), version), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return pending, nil
	}
	if err != nil {
		return pending, err
	}
	return buildState(build), nil
}

// rolloutState returns the state of an object that has a rollout and conditions. done is the
// condition reason that indicates a complete rollout.
func rolloutState(object *unstructured.Unstructured, done string) state {
	if number(object, "status", "observedGeneration") < object.GetGeneration() {
		return pending
	}
	available := conditionOf(object, "Available")
	progress := conditionOf(object, "Progressing")
	return either(available["status"] == "True" && progress["status"] == "True" && progress["reason"] == done, progress["status"] == "False")
}

// createFailure returns the reason why the pods of an object with a rollout cannot be created, or
// "". The object remains pending, because an administrator can raise the quota.
func createFailure(object *unstructured.Unstructured) string {
	failing := conditionOf(object, "ReplicaFailure")
	message, _ := failing["message"].(string)
	if failing["status"] != "True" {
		return ""
	}
	return message
}

func statefulSetState(object *unstructured.Unstructured) state {
	current := number(object, "status", "observedGeneration") >= object.GetGeneration()
	return either(current && number(object, "status", "readyReplicas") == number(object, "spec", "replicas"), false)
}

func jobState(object *unstructured.Unstructured) state {
	complete := conditionOf(object, string(batchv1.JobComplete))
	failing := conditionOf(object, string(batchv1.JobFailed))
	return either(complete["status"] == "True", failing["status"] == "True")
}

func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...) // "" if missing
	return value
}

func number(object *unstructured.Unstructured, path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(object.Object, path...) // 0 if missing
	return value
}

// conditionOf returns a condition's fields, or nil.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	// The slice is nil if there are no conditions.
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if content, ok := entry.(map[string]any); ok && content["type"] == kind {
			return content
		}
	}
	return nil
}
