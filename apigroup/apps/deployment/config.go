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

// configController creates a deployment for each version of a configuration, scales finished
// deployments, and deletes old deployments.
type configController struct {
	core        coreclient.CoreV1Interface
	apps        appsclient.DeploymentConfigsGetter
	configs     appslisters.DeploymentConfigLister
	deployments corelisters.ReplicationControllerLister
	events      record.EventRecorder
}

func (l *configController) controller(configs, deployments cache.SharedIndexInformer) controller.Controller {
	owner := func(object any) []controller.Key {
		rc := object.(*corev1.ReplicationController)
		return []controller.Key{{Namespace: rc.Namespace, Name: rollout.ConfigOf(rc)}}
	}
	return controller.Controller{
		Name:      "deployment configurations",
		Watches:   []controller.Watch{{Informer: configs}, {Informer: deployments, Keys: owner}},
		Reconcile: l.reconcile, MinBackoff: minBackoff,
	}
}

func (l *configController) reconcile(ctx context.Context, key controller.Key) error {
	config, live, err := controller.Live(l.configs.DeploymentConfigs(key.Namespace).Get(key.Name))
	if !live {
		return err
	}
	dc := config.DeepCopy()
	deployments, err := l.of(dc)
	if err != nil {
		return err
	}
	latest := versionOf(deployments, dc.Status.LatestVersion)
	if dc.Spec.Paused {
		return l.updateStatus(ctx, dc, deployments, nil)
	}
	if latest != nil && rollout.Ended(latest) {
		if err := l.scaleAll(ctx, dc, deployments); err != nil {
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
	return l.prune(ctx, dc, deployments)
}

// of returns a configuration's deployments, newest first. It ignores deployments of a deleted
// configuration with the same name.
func (l *configController) of(dc *appsv1.DeploymentConfig) ([]*corev1.ReplicationController, error) {
	deployments, err := l.deployments.ReplicationControllers(dc.Namespace).List(rollout.Selector(dc.Name))
	if err != nil {
		return nil, err
	}
	var controllers []*corev1.ReplicationController
	for _, rc := range deployments {
		if metav1.IsControlledBy(rc, dc) {
			controllers = append(controllers, rc)
		}
	}
	rollout.Newest(controllers)
	return controllers, nil
}

func versionOf(deployments []*corev1.ReplicationController, version int64) *corev1.ReplicationController {
	for _, rc := range deployments {
		if rollout.Version(rc) == version {
			return rc
		}
	}
	return nil
}

// trigger increments the version if a trigger requires a new deployment, and reports whether it has
// done so. The status update causes another reconcile, which creates the deployment.
func (l *configController) trigger(ctx context.Context, dc *appsv1.DeploymentConfig, latest *corev1.ReplicationController, deployments []*corev1.ReplicationController) (bool, error) {
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
		return false, nil // reconcile creates the deployment
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

// deploy creates the deployment of the latest version. If other deployments are running, it only
// cancels them. When they finish, the configuration is reconciled again.
func (l *configController) deploy(ctx context.Context, dc *appsv1.DeploymentConfig, deployments []*corev1.ReplicationController) error {
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
	created, err := l.core.ReplicationControllers(dc.Namespace).Create(ctx, rc, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return l.checkExisting(ctx, dc, rc.Name)
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
	progressing := condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, appsv1.NewReplicationControllerCreatedReason,
		fmt.Sprintf("created new replication controller %q", rc.Name))
	return l.updateStatus(ctx, dc, append([]*corev1.ReplicationController{created}, deployments...), progressing)
}

// checkExisting returns an error if a ReplicationController with the given name exists but is not
// owned by the configuration.
func (l *configController) checkExisting(ctx context.Context, dc *appsv1.DeploymentConfig, name string) error {
	rc, err := l.core.ReplicationControllers(dc.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read deployment %q: %w", name, err)
	}
	if metav1.IsControlledBy(rc, dc) {
		return nil
	}
	return fmt.Errorf("create deployment %q: a replication controller with this name exists and has another owner; delete it", name)
}

// scaleAll scales the active deployment to the desired number of pods, or to 0 if dc.Spec.Test is
// set. It scales all other finished deployments to 0.
func (l *configController) scaleAll(ctx context.Context, dc *appsv1.DeploymentConfig, newestFirst []*corev1.ReplicationController) error {
	active := rollout.Active(newestFirst)
	for _, rc := range newestFirst {
		replicas := int32(0)
		if rc == active && !dc.Spec.Test {
			replicas = dc.Spec.Replicas
		}
		if ptr.Deref(rc.Spec.Replicas, 1) != replicas && rollout.Ended(rc) {
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":%d}}`, rc.UID, replicas)
			if _, err := l.core.ReplicationControllers(rc.Namespace).Patch(ctx, rc.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("scale deployment %q to %d: %w", rc.Name, replicas, err)
			}
		}
	}
	return nil
}

// prune deletes the oldest finished deployments in excess of the history limit. It keeps the latest
// and the active deployment.
func (l *configController) prune(ctx context.Context, dc *appsv1.DeploymentConfig, newestFirst []*corev1.ReplicationController) error {
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
			return fmt.Errorf("delete old deployment %q: %w", rc.Name, err)
		}
	}
	return nil
}
