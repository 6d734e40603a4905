package deployment

import (
	"context"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	appsclient "github.com/openshift/client-go/apps/clientset/versioned/typed/apps/v1"
	appslisters "github.com/openshift/client-go/apps/listers/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/controller"
)

// configLoop makes a deployment for each version of a configuration and keeps the number of pods when none is under way.
type configLoop struct {
	core        coreclient.CoreV1Interface
	apps        appsclient.DeploymentConfigsGetter
	configs     appslisters.DeploymentConfigLister
	deployments corelisters.ReplicationControllerLister
	events      record.EventRecorder
}

func (l *configLoop) loop(configs, deployments cache.SharedIndexInformer) controller.Loop {
	owner := func(object any) []controller.Key {
		rc := object.(*corev1.ReplicationController)
		return []controller.Key{{Namespace: rc.Namespace, Name: rollout.ConfigOf(rc)}}
	}
	return controller.Loop{
		Name:      "deployment configurations",
		Watches:   []controller.Watch{{Informer: configs}, {Informer: deployments, Keys: owner}},
		Reconcile: l.reconcile, Retry: firstRetry,
	}
}

func (l *configLoop) reconcile(ctx context.Context, key controller.Key) error {
	found, err := l.configs.DeploymentConfigs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if found.DeletionTimestamp != nil {
		return nil
	}
	dc := found.DeepCopy()
	deployments, err := l.of(dc)
	if err != nil {
		return err
	}
	latest := versionOf(deployments, dc.Status.LatestVersion)
	if dc.Spec.Paused {
		return l.updateStatus(ctx, dc, deployments, nil)
	}
	if latest != nil && rollout.Ended(latest) {
		if err := l.keep(ctx, dc, deployments); err != nil {
			return err
		}
	}
	if started, err := l.trigger(ctx, dc, latest, deployments); started || err != nil {
		return err
	}
	if latest == nil && dc.Status.LatestVersion > 0 {
		return l.deploy(ctx, dc, deployments)
	}
	if err := l.updateStatus(ctx, dc, deployments, nil); err != nil || latest == nil || !rollout.Ended(latest) {
		return err
	}
	return l.forget(ctx, dc, deployments)
}

// of are the deployments of a configuration, the newest one first. Those of a deleted one of the same name are not among them.
func (l *configLoop) of(dc *appsv1.DeploymentConfig) ([]*corev1.ReplicationController, error) {
	found, err := l.deployments.ReplicationControllers(dc.Namespace).List(rollout.Selector(dc.Name))
	if err != nil {
		return nil, err
	}
	var own []*corev1.ReplicationController
	for _, rc := range found {
		if metav1.IsControlledBy(rc, dc) {
			own = append(own, rc)
		}
	}
	rollout.Newest(own)
	return own, nil
}

func versionOf(deployments []*corev1.ReplicationController, version int64) *corev1.ReplicationController {
	for _, rc := range deployments {
		if rollout.Version(rc) == version {
			return rc
		}
	}
	return nil
}

// trigger counts the version up if something calls for a new deployment. The change of the status wakes the loop again.
func (l *configLoop) trigger(ctx context.Context, dc *appsv1.DeploymentConfig, latest *corev1.ReplicationController, deployments []*corev1.ReplicationController) (bool, error) {
	if len(unresolved(dc.Spec.Template)) > 0 {
		return false, nil
	}
	var last *appsv1.DeploymentConfig
	switch {
	case latest != nil:
		var err error
		if last, err = rollout.Config(latest); err != nil {
			return false, err
		}
	case dc.Status.LatestVersion > 0:
		return false, nil // it is being made
	}
	causes := rollout.Causes(dc, last)
	if len(causes) == 0 {
		return false, nil
	}
	dc.Status.LatestVersion++
	dc.Status.Details = &appsv1.DeploymentDetails{Causes: causes}
	dc.Status.Details.Message = rollout.Message(dc.Status.Details)
	return true, l.updateStatus(ctx, dc, deployments, nil)
}

// deploy makes the deployment of the latest version, once those that are under way have been cancelled.
func (l *configLoop) deploy(ctx context.Context, dc *appsv1.DeploymentConfig, deployments []*corev1.ReplicationController) error {
	waits := false
	for _, rc := range deployments {
		if rollout.Ended(rc) {
			continue
		}
		waits = true
		if rollout.Cancelled(rc) {
			continue
		}
		err := annotate(ctx, l.core, rc, map[string]any{
			appsv1.DeploymentCancelledAnnotation: "true", appsv1.DeploymentStatusReasonAnnotation: rollout.CancelledByNewer,
		})
		if err != nil {
			return err
		}
		l.events.Eventf(dc, corev1.EventTypeNormal, "DeploymentCancelled", "Cancelled deployment %q superseded by version %d", rc.Name, dc.Status.LatestVersion)
	}
	if waits {
		return l.updateStatus(ctx, dc, deployments, nil)
	}
	rc, err := rollout.New(dc)
	if err != nil {
		return err
	}
	made, err := l.core.ReplicationControllers(dc.Namespace).Create(ctx, rc, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return l.taken(ctx, dc, rc.Name)
	}
	if err != nil {
		l.events.Eventf(dc, corev1.EventTypeWarning, "DeploymentCreationFailed", "Couldn't deploy version %d: %s", dc.Status.LatestVersion, err)
		failed := condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, appsv1.ReplicationControllerCreateErrorReason, err.Error())
		if err := l.updateStatus(ctx, dc, deployments, failed); err != nil {
			return err
		}
		return fmt.Errorf("create deployment %q: %w", rc.Name, err)
	}
	l.events.Eventf(dc, corev1.EventTypeNormal, "DeploymentCreated", "Created new replication controller %q for version %d", rc.Name, dc.Status.LatestVersion)
	created := condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, appsv1.NewReplicationControllerCreatedReason,
		fmt.Sprintf("created new replication controller %q", rc.Name))
	return l.updateStatus(ctx, dc, append([]*corev1.ReplicationController{made}, deployments...), created)
}

// taken tells a deployment that the cache does not have yet from something else of its name.
func (l *configLoop) taken(ctx context.Context, dc *appsv1.DeploymentConfig, name string) error {
	rc, err := l.core.ReplicationControllers(dc.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read deployment %q: %w", name, err)
	}
	if metav1.IsControlledBy(rc, dc) {
		return nil
	}
	return fmt.Errorf("create deployment %q: a replication controller of that name is there already and belongs to something else; remove it", name)
}

// keep gives the deployment that serves the wanted number of pods and takes those of the others.
func (l *configLoop) keep(ctx context.Context, dc *appsv1.DeploymentConfig, newestFirst []*corev1.ReplicationController) error {
	active := rollout.Active(newestFirst)
	for _, rc := range newestFirst {
		wanted := int32(0)
		if rc == active && !dc.Spec.Test {
			wanted = dc.Spec.Replicas
		}
		if ptr.Deref(rc.Spec.Replicas, 1) != wanted && rollout.Ended(rc) {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":%d}}`, rc.UID, wanted)
			if _, err := l.core.ReplicationControllers(rc.Namespace).Patch(ctx, rc.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("scale deployment %q to %d: %w", rc.Name, wanted, err)
			}
		}
	}
	return nil
}

// forget removes the deployments that are beyond the history's limit.
func (l *configLoop) forget(ctx context.Context, dc *appsv1.DeploymentConfig, newestFirst []*corev1.ReplicationController) error {
	active := rollout.Active(newestFirst)
	var old []*corev1.ReplicationController
	for i, rc := range newestFirst {
		if i > 0 && rc != active && rollout.Ended(rc) && rc.Status.Replicas == 0 {
			old = append(old, rc)
		}
	}
	limit := int(ptr.Deref(dc.Spec.RevisionHistoryLimit, 10))
	for _, rc := range old[min(limit, len(old)):] {
		err := l.core.ReplicationControllers(rc.Namespace).Delete(ctx, rc.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(rc.UID)), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove old deployment %q: %w", rc.Name, err)
		}
	}
	return nil
}
