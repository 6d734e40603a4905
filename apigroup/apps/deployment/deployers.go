package deployment

import (
	"context"
	"encoding/json"
	"errors"
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
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/controller"
)

// deployerController creates the deployer pod of each deployment, and updates the phase of the
// deployment.
type deployerController struct {
	*Controllers
	core        coreclient.CoreV1Interface
	creator     coreclient.PodsGetter // creates pods with the permissions of its service account
	deployments corelisters.ReplicationControllerLister
	pods        corelisters.PodLister
	events      record.EventRecorder
}

// maxBackoff is shorter than the default, so that a deployment starts soon after an administrator
// has raised a quota.
const maxBackoff = 30 * time.Second

func (l *deployerController) controller(deployments, pods cache.SharedIndexInformer) controller.Controller {
	deploymentKey := func(object any) []controller.Key {
		pod := object.(*corev1.Pod)
		return []controller.Key{{Namespace: pod.Namespace, Name: pod.Labels[appsv1.DeployerPodForDeploymentLabel]}}
	}
	return controller.Controller{
		Name:      "deployers",
		Watches:   []controller.Watch{{Informer: deployments}, {Informer: pods, Keys: deploymentKey}},
		Reconcile: l.reconcile, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
	}
}

func (l *deployerController) reconcile(ctx context.Context, key controller.Key) error {
	rc, live, err := controller.Live(l.deployments.ReplicationControllers(key.Namespace).Get(key.Name))
	if !live {
		return err
	}
	if rollout.ConfigOf(rc) == "" || rollout.Ended(rc) {
		return nil
	}
	if rollout.Phase(rc) == appsv1.DeploymentStatusNew {
		return l.createDeployer(ctx, rc)
	}
	return l.syncDeployer(ctx, rc)
}

// createDeployer creates the deployer pod. It also creates the first pods of a rolling deployment,
// so that they start at the same time as the deployer.
func (l *deployerController) createDeployer(ctx context.Context, rc *corev1.ReplicationController) error {
	if rollout.Cancelled(rc) {
		return l.fail(ctx, rc, "")
	}
	config, err := rollout.Config(rc)
	if err != nil {
		return l.fail(ctx, rc, err.Error())
	}
	pod := l.pod(rc, config)
	if config.Spec.Strategy.CustomParams == nil {
		if err := l.setToken(ctx, rc.Namespace, &pod.Spec); err != nil {
			return err
		}
	}
	existing, err := l.creator.Pods(rc.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		existing, err = l.core.Pods(rc.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case err == nil && !rollout.Owns(rc, existing):
			return l.fail(ctx, rc, rollout.UnrelatedPod)
		case err == nil && existing.DeletionTimestamp != nil: // an earlier attempt's pod is terminating
			return controller.RequeueAfter(minBackoff)
		}
	}
	if err != nil {
		return l.reportFailure(ctx, rc, config, fmt.Errorf("create deployer pod %q: %w", pod.Name, err))
	}
	if err := l.firstStep(ctx, rc, config); err != nil {
		return err
	}
	return l.updateAnnotations(ctx, rc, map[string]any{
		appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusPending,
		appsv1.DeploymentPodAnnotation:    existing.Name,
		rollout.CreatedAnnotation:         existing.CreationTimestamp.UTC().Format(time.RFC3339),
		rollout.CreateErrorAnnotation:     nil,
	})
}

// reportFailure records the reason why a deployer pod cannot be created, in an event and in a
// deployment annotation. It returns the error, so the deployment is retried.
func (l *deployerController) reportFailure(ctx context.Context, rc *corev1.ReplicationController, config *appsv1.DeploymentConfig, err error) error {
	l.events.Eventf(config, corev1.EventTypeWarning, failedCreate, "Error creating deployer pod: %v", errors.Unwrap(err))
	return errors.Join(err, l.updateAnnotations(ctx, rc, map[string]any{rollout.CreateErrorAnnotation: err.Error()}))
}

// firstStep scales a deployment up to the size of its first step, unless it already has pods.
func (l *deployerController) firstStep(ctx context.Context, rc *corev1.ReplicationController, config *appsv1.DeploymentConfig) error {
	desired, err := rollout.Desired(rc)
	if err != nil {
		return nil // the deployer reports the error
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
	// The error is Invalid if a test operation of the patch fails. In this case, the deployment has
	// been recreated or already has pods.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
		return fmt.Errorf("scale deployment %q to %d: %w", rc.Name, first, err)
	}
	return nil
}

// syncDeployer updates a deployment from the status of its deployer pod. If the deployment is
// canceled, it stops the pod.
func (l *deployerController) syncDeployer(ctx context.Context, rc *corev1.ReplicationController) error {
	pod, err := l.deployerPod(ctx, rc)
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
		return l.updateAnnotations(ctx, rc, map[string]any{
			appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusComplete, rollout.CompletedAnnotation: now(),
			appsv1.DeploymentCancelledAnnotation: nil, rollout.DesiredAnnotation: nil,
		})
	case phase == corev1.PodFailed:
		return l.fail(ctx, rc, pod.Status.Message)
	case rollout.Cancelled(rc):
		return l.stop(ctx, rc)
	case phase == corev1.PodRunning && rollout.Phase(rc) != appsv1.DeploymentStatusRunning:
		return l.updateAnnotations(ctx, rc, map[string]any{
			appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusRunning, rollout.StartedAnnotation: now(),
		})
	}
	return nil
}

// deployerPod returns the pod that has the name of a deployment's deployer. If the cache
// contains no such pod, or one that has finished, deployerPod reads the pod from the API server,
// because the cache might lack the pod, or still contain the pod of an earlier attempt.
func (l *deployerController) deployerPod(ctx context.Context, rc *corev1.ReplicationController) (*corev1.Pod, error) {
	name := rollout.DeployerName(rc.Name)
	pod, err := l.pods.Pods(rc.Namespace).Get(name)
	if err == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return pod, nil
	}
	return l.core.Pods(rc.Namespace).Get(ctx, name, metav1.GetOptions{})
}

// fail marks a deployment as failed. If the deployment has been canceled, fail keeps the
// cancellation reason.
func (l *deployerController) fail(ctx context.Context, rc *corev1.ReplicationController, reason string) error {
	changes := map[string]any{
		appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusFailed, rollout.CompletedAnnotation: now(), rollout.CreateErrorAnnotation: nil,
	}
	if !rollout.Cancelled(rc) && reason != "" {
		changes[appsv1.DeploymentStatusReasonAnnotation] = reason
	}
	return l.updateAnnotations(ctx, rc, changes)
}

// stopDeadlineSeconds is the activeDeadlineSeconds value that stops a pod immediately. Kubernetes
// does not allow 0.
const stopDeadlineSeconds = 1

// stop stops the deployer pod and the hook pods. The pods and their logs remain.
func (l *deployerController) stop(ctx context.Context, rc *corev1.ReplicationController) error {
	pods, err := l.pods.Pods(rc.Namespace).List(rollout.DeployerSelector(rc.Name))
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || ptr.Deref(pod.Spec.ActiveDeadlineSeconds, 0) == stopDeadlineSeconds {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"activeDeadlineSeconds":%d}}`, stopDeadlineSeconds)
		if _, err := l.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("stop deployer pod %q: %w", pod.Name, err)
		}
	}
	return nil
}

// updateAnnotations changes annotations of a deployment that has not finished. It reads the
// deployment first, because the deployer also updates it, and the cache can be stale.
func (l *deployerController) updateAnnotations(ctx context.Context, rc *corev1.ReplicationController, annotations map[string]any) error {
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

// annotate changes a deployment's annotations. It returns a conflict if the deployment has changed
// since it was read. A nil value removes an annotation.
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
