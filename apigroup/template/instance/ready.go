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

// waitForReady is the older of the two annotations by which an object says that an instance is ready only when the object is; openshift/api has the
// other one.
const waitForReady = "template.openshift.io/wait-for-ready"

// state is how an object is.
type state int

const (
	pending state = iota
	ready
	failed
)

// How often an instance is looked at that waits for its objects: a twentieth of the time that it has waited for, within bounds.
const (
	minWait, maxWait = time.Second, 30 * time.Second
	waitShare        = 20
)

// patience is how long the objects of an instance may take to be ready, as in OpenShift 3.
const patience = time.Hour

// await looks whether the objects of an instance are ready.
func (l *loop) await(ctx context.Context, instance *templatev1.TemplateInstance) error {
	all := true
	for _, made := range instance.Status.Objects {
		if made.Ref.UID == "" {
			continue // nothing was kept
		}
		one, err := l.referred(made)
		if err != nil {
			return judged(err)
		}
		name := fmt.Sprintf("%s %q", made.Ref.Kind, made.Ref.Name)
		object, err := one.namespaced(l.objects).Get(ctx, made.Ref.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && object.GetUID() != made.Ref.UID {
			return final(fmt.Errorf("wait for %s: it was deleted", name))
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		if annotations := object.GetAnnotations(); annotations[templatev1.WaitForReadyAnnotation] != "true" && annotations[waitForReady] != "true" {
			continue
		}
		now, err := l.state(ctx, object)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		if now == failed {
			return final(fmt.Errorf("readiness failed on %s %s/%s", made.Ref.Kind, made.Ref.Namespace, made.Ref.Name))
		}
		all = all && now == ready
	}
	if !all {
		waited := time.Since(condition(instance, templatev1.TemplateInstanceReady).LastTransitionTime.Time)
		if waited > patience {
			return final(errors.New("timeout while waiting for template instance to be ready"))
		}
		return controller.After(min(max(waited/waitShare, minWait), maxWait))
	}
	set(instance, templatev1.TemplateInstanceReady, corev1.ConditionTrue, "Created", "")
	return l.update(ctx, instance)
}

// state judges an object of the kinds that can be waited for; others are always ready.
func (l *loop) state(ctx context.Context, object *unstructured.Unstructured) (state, error) {
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

// buildConfigState is that of the configuration's latest build.
func (l *loop) buildConfigState(ctx context.Context, object *unstructured.Unstructured) (state, error) {
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

// rolloutState is that of what has a rollout with conditions; done is the reason of a rollout that is complete.
func rolloutState(object *unstructured.Unstructured, done string) state {
	if number(object, "status", "observedGeneration") < object.GetGeneration() {
		return pending
	}
	available, _ := conditionOf(object, "Available")
	progress, reason := conditionOf(object, "Progressing")
	failing, _ := conditionOf(object, "ReplicaFailure")
	return either(available == "True" && progress == "True" && reason == done, progress == "False" || failing == "True")
}

func statefulSetState(object *unstructured.Unstructured) state {
	current := number(object, "status", "observedGeneration") >= object.GetGeneration()
	return either(current && number(object, "status", "readyReplicas") == number(object, "spec", "replicas"), false)
}

func jobState(object *unstructured.Unstructured) state {
	complete, _ := conditionOf(object, string(batchv1.JobComplete))
	failing, _ := conditionOf(object, string(batchv1.JobFailed))
	return either(complete == "True", failing == "True")
}

func text(object *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // empty where it is none
	return found
}

func number(object *unstructured.Unstructured, path ...string) int64 {
	found, _, _ := unstructured.NestedInt64(object.Object, path...) // 0 where it is none
	return found
}

// conditionOf is the status of a condition, and why.
func conditionOf(object *unstructured.Unstructured, kind string) (status, reason string) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // none where there are none
	for _, one := range all {
		if content, ok := one.(map[string]any); ok && content["type"] == kind {
			status, _ = content["status"].(string)
			reason, _ = content["reason"].(string)
		}
	}
	return status, reason
}
