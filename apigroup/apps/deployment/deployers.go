package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/controller"
)

// deployerLoop gives each deployment its deployer pod and writes down how far that has come.
type deployerLoop struct {
	*Controllers
	core        coreclient.CoreV1Interface
	creator     coreclient.PodsGetter // makes the pods, so that their rights count, and not ours
	deployments corelisters.ReplicationControllerLister
	pods        corelisters.PodLister
}

func (l *deployerLoop) loop(deployments, pods cache.SharedIndexInformer) controller.Loop {
	deployed := func(object any) []controller.Key {
		pod := object.(*corev1.Pod)
		return []controller.Key{{Namespace: pod.Namespace, Name: pod.Labels[appsv1.DeployerPodForDeploymentLabel]}}
	}
	return controller.Loop{
		Name:      "deployers",
		Watches:   []controller.Watch{{Informer: deployments}, {Informer: pods, Keys: deployed}},
		Reconcile: l.reconcile, Retry: firstRetry,
	}
}

func (l *deployerLoop) reconcile(ctx context.Context, key controller.Key) error {
	rc, err := l.deployments.ReplicationControllers(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if rc.DeletionTimestamp != nil || rollout.ConfigOf(rc) == "" || rollout.Ended(rc) {
		return nil
	}
	if rollout.Phase(rc) == appsv1.DeploymentStatusNew {
		return l.begin(ctx, rc)
	}
	return l.follow(ctx, rc)
}

// begin makes the deployer pod, and the pods with which a rolling deployment begins in any case: they start beside it, not after it.
func (l *deployerLoop) begin(ctx context.Context, rc *corev1.ReplicationController) error {
	if rollout.Cancelled(rc) {
		return l.fail(ctx, rc, "")
	}
	config, err := rollout.Config(rc)
	if err != nil {
		return l.fail(ctx, rc, err.Error())
	}
	pod := l.pod(rc, config)
	if config.Spec.Strategy.CustomParams == nil {
		if err := l.giveToken(ctx, rc.Namespace, &pod.Spec); err != nil {
			return err
		}
	}
	made, err := l.creator.Pods(rc.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = l.core.Pods(rc.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err == nil && !rollout.Owns(rc, made):
			return l.fail(ctx, rc, rollout.UnrelatedPod)
		case err == nil && made.DeletionTimestamp != nil: // that of an earlier attempt, which ends
			return controller.After(firstRetry)
		}
	}
	if err != nil {
		return fmt.Errorf("create deployer pod %q: %w", pod.Name, err)
	}
	if err := l.firstStep(ctx, rc, config); err != nil {
		return err
	}
	return l.advance(ctx, rc, map[string]any{
		appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusPending,
		appsv1.DeploymentPodAnnotation:    made.Name,
		rollout.CreatedAnnotation:         made.CreationTimestamp.UTC().Format(time.RFC3339),
	})
}

// firstStep gives a deployment the pods that it begins with, unless it has some: its deployer was quicker then.
func (l *deployerLoop) firstStep(ctx context.Context, rc *corev1.ReplicationController, config *appsv1.DeploymentConfig) error {
	desired, err := rollout.Desired(rc)
	if err != nil {
		return nil // the deployer says so
	}
	all, err := l.deployments.ReplicationControllers(rc.Namespace).List(rollout.Selector(config.Name))
	if err != nil {
		return err
	}
	old := int32(0)
	for _, other := range all {
		if other.Name != rc.Name {
			old += ptr.Deref(other.Spec.Replicas, 1)
		}
	}
	first := rollout.FirstStep(config, desired, old)
	if first == 0 || ptr.Deref(rc.Spec.Replicas, 1) > 0 {
		return nil
	}
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":"/spec/replicas","value":0},{"op":"replace","path":"/spec/replicas","value":%d}]`, rc.UID, first)
	_, err = l.core.ReplicationControllers(rc.Namespace).Patch(ctx, rc.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) { // invalid: a test of the patch says no
		return fmt.Errorf("scale deployment %q to %d: %w", rc.Name, first, err)
	}
	return nil
}

// follow writes down what has become of the deployer pod, and ends it when the deployment is cancelled.
func (l *deployerLoop) follow(ctx context.Context, rc *corev1.ReplicationController) error {
	pod, err := l.find(ctx, rc)
	switch {
	case apierrors.IsNotFound(err):
		return l.fail(ctx, rc, rollout.DeployerGone)
	case err != nil:
		return err
	case !rollout.Owns(rc, pod):
		return l.fail(ctx, rc, rollout.UnrelatedPod)
	}
	switch phase := pod.Status.Phase; {
	case phase == corev1.PodSucceeded:
		return l.advance(ctx, rc, map[string]any{
			appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusComplete, rollout.CompletedAnnotation: now(),
			appsv1.DeploymentCancelledAnnotation: nil, rollout.DesiredAnnotation: nil,
		})
	case phase == corev1.PodFailed:
		return l.fail(ctx, rc, pod.Status.Message)
	case rollout.Cancelled(rc):
		return l.stop(ctx, rc)
	case phase == corev1.PodRunning && rollout.Phase(rc) != appsv1.DeploymentStatusRunning:
		return l.advance(ctx, rc, map[string]any{
			appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusRunning, rollout.StartedAnnotation: now(),
		})
	}
	return nil
}

// find is the pod with the name of a deployment's deployer. The cache may be behind: it may not have it yet, or still that of an earlier attempt, which has ended.
func (l *deployerLoop) find(ctx context.Context, rc *corev1.ReplicationController) (*corev1.Pod, error) {
	name := rollout.DeployerName(rc.Name)
	pod, err := l.pods.Pods(rc.Namespace).Get(name)
	if err == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return pod, nil
	}
	return l.core.Pods(rc.Namespace).Get(ctx, name, metav1.GetOptions{})
}

// fail writes down that a deployment has failed. A reason that stands there, such as who cancelled it, stays.
func (l *deployerLoop) fail(ctx context.Context, rc *corev1.ReplicationController, reason string) error {
	changes := map[string]any{
		appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusFailed, rollout.CompletedAnnotation: now(),
	}
	if !rollout.Cancelled(rc) && reason != "" {
		changes[appsv1.DeploymentStatusReasonAnnotation] = reason
	}
	return l.advance(ctx, rc, changes)
}

// stopped is the deadline of pods that shall end at once; 0 is not allowed.
const stopped = 1

// stop ends the deployer and its hooks. They stay, with their logs.
func (l *deployerLoop) stop(ctx context.Context, rc *corev1.ReplicationController) error {
	pods, err := l.pods.Pods(rc.Namespace).List(rollout.DeployerSelector(rc.Name))
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0) == stopped {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"activeDeadlineSeconds":%d}}`, stopped)
		if _, err := l.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("stop deployer pod %q: %w", pod.Name, err)
		}
	}
	return nil
}

// advance writes down how far a deployment has come, unless it has ended meanwhile, as its deployer writes down itself: the cache may be behind.
func (l *deployerLoop) advance(ctx context.Context, rc *corev1.ReplicationController, annotations map[string]any) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := l.core.ReplicationControllers(rc.Namespace).Get(ctx, rc.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (now.UID != rc.UID || rollout.Ended(now)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read deployment %q: %w", rc.Name, err)
		}
		return annotate(ctx, l.core, now, annotations)
	})
}

// annotate changes annotations of a deployment as it was read; nil removes one.
func annotate(ctx context.Context, core coreclient.CoreV1Interface, rc *corev1.ReplicationController, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": rc.UID, "resourceVersion": rc.ResourceVersion, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("annotate deployment %q: %w", rc.Name, err)
	}
	if _, err := core.ReplicationControllers(rc.Namespace).Patch(ctx, rc.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate deployment %q: %w", rc.Name, err)
	}
	return nil
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }
