package deploymentconfig

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// Rollback restores the pod template of a revision, or of the previous revision if revision is 0.
// It returns a message. For a client-side dry run, it returns the pod template in JSON instead.
func (c *Client) Rollback(object runtime.Object, annotations map[string]string, revision int64, dry util.DryRunStrategy) (string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	rollback := &appsv1.DeploymentConfigRollback{
		Name: accessor.GetName(), UpdatedAnnotations: annotations, Spec: appsv1.DeploymentConfigRollbackSpec{Revision: revision, IncludeTemplate: true},
	}
	if dry == util.DryRunClient {
		earlier, err := c.Earlier(ctx, accessor.GetNamespace(), rollback)
		if err != nil {
			return "", err
		}
		text, err := json.MarshalIndent(earlier.Spec.Template, "", "  ")
		return string(text), err
	}
	_, err = c.GoBack(ctx, accessor.GetNamespace(), rollback, dry == util.DryRunServer)
	return "rolled back", err
}

// Target returns the deployment config and the version that "oc rollback NAME" restores. If name is
// a deployment config, Target returns the requested version. Version 0 stands for the newest
// complete deployment before the latest one. If name is a deployment instead, version is ignored.
func (c *Client) Target(ctx context.Context, namespace, name string, version int64) (config string, deployment int64, err error) {
	dc, err := c.apps.DeploymentConfigs(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		rc, missing := c.core.ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{})
		if missing != nil || rollout.ConfigOf(rc) == "" {
			return "", 0, err
		}
		return rollout.ConfigOf(rc), rollout.Version(rc), nil
	}
	if err != nil || version != 0 {
		return name, version, err
	}
	all, err := c.deployments(ctx, namespace, name)
	if err != nil {
		return "", 0, err
	}
	for _, rc := range all {
		if version := rollout.Version(rc); version < dc.Status.LatestVersion && rollout.Phase(rc) == appsv1.DeploymentStatusComplete {
			return name, version, nil
		}
	}
	return "", 0, fmt.Errorf("roll back deployment config %q: no deployment before the latest one is complete", name)
}

// Earlier returns the version of a deployment config that belongs to an earlier deployment. It does
// not store this version.
func (c *Client) Earlier(ctx context.Context, namespace string, rollback *appsv1.DeploymentConfigRollback) (*appsv1.DeploymentConfig, error) {
	return c.apps.DeploymentConfigs(namespace).Rollback(ctx, rollback.Name, rollback, metav1.CreateOptions{})
}

// GoBack stores an earlier version of a deployment config. It then starts a deployment, unless a
// config change trigger starts it. A dry run only validates the update.
func (c *Client) GoBack(ctx context.Context, namespace string, rollback *appsv1.DeploymentConfigRollback, dry bool) (config *appsv1.DeploymentConfig, err error) {
	options := metav1.UpdateOptions{}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// Retry, because the controller might update the status concurrently.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		earlier, err := c.Earlier(ctx, namespace, rollback)
		if err != nil {
			return err
		}
		config, err = c.apps.DeploymentConfigs(namespace).Update(ctx, earlier, options)
		return err
	})
	if err != nil || dry || rollout.HasTrigger(config, appsv1.DeploymentTriggerOnConfigChange) {
		return config, err
	}
	return c.instantiate(ctx, namespace, &appsv1.DeploymentRequest{Name: config.Name, Force: true})
}

func (c *Client) instantiate(ctx context.Context, namespace string, request *appsv1.DeploymentRequest) (*appsv1.DeploymentConfig, error) {
	return c.apps.DeploymentConfigs(namespace).Instantiate(ctx, request.Name, request, metav1.CreateOptions{})
}

// latest returns a deployment config and its latest deployment, which is nil if the config has no
// deployments.
func (c *Client) latest(ctx context.Context, namespace, name string) (*appsv1.DeploymentConfig, *corev1.ReplicationController, error) {
	dc, err := c.apps.DeploymentConfigs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || dc.Status.LatestVersion == 0 {
		return dc, nil, err
	}
	rc, err := c.core.ReplicationControllers(namespace).Get(ctx, rollout.Name(name, dc.Status.LatestVersion), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return dc, nil, nil
	}
	return dc, rc, err
}

// Deploy starts a deployment with the current images. Unless retry is true, it fails if another
// deployment is in progress. Like Cancel and Retry, it returns the deployment config and a message.
func (c *Client) Deploy(ctx context.Context, namespace, name string, retry bool) (*appsv1.DeploymentConfig, string, error) {
	if _, err := c.deployable(ctx, namespace, name, retry); err != nil {
		return nil, "", err
	}
	dc, err := c.instantiate(ctx, namespace, &appsv1.DeploymentRequest{Name: name, Latest: true, Force: true})
	return dc, "rolled out", err
}

// tryDeploy implements a dry run of Deploy. It returns the deployment config with the next version
// number and the current images, but does not store it.
func (c *Client) tryDeploy(ctx context.Context, namespace, name string, retry bool) (*appsv1.DeploymentConfig, string, error) {
	dc, err := c.deployable(ctx, namespace, name, retry)
	if err != nil {
		return nil, "", err
	}
	dc.Status.LatestVersion++
	return dc, "rolled out (dry run)", nil
}

// deployable returns a deployment config if it can be deployed, and an error otherwise.
func (c *Client) deployable(ctx context.Context, namespace, name string, retry bool) (*appsv1.DeploymentConfig, error) {
	dc, rc, err := c.latest(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, err
	case dc.Spec.Paused:
		return nil, fmt.Errorf("cannot deploy a paused deployment config; to resume it, use oc rollout resume dc/%s", name)
	case retry:
		return dc, nil
	case rc != nil && !rollout.Ended(rc):
		return nil, fmt.Errorf("#%d is already in progress (%s)", rollout.Version(rc), rollout.Phase(rc))
	case rc != nil || dc.Status.LatestVersion == 0:
		return dc, nil
	}
	// Check all deployments, because the latest deployment is not created until the deployments
	// that it cancels have ended.
	all, err := c.deployments(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	for _, earlier := range all {
		if !rollout.Ended(earlier) {
			return nil, fmt.Errorf("#%d is already in progress (it waits for the end of #%d)", dc.Status.LatestVersion, rollout.Version(earlier))
		}
	}
	return dc, nil
}

// Start starts a deployment. It calls Deploy without retry.
func (c *Client) Start(ctx context.Context, namespace, name string) (*appsv1.DeploymentConfig, string, error) {
	return c.Deploy(ctx, namespace, name, false)
}

// EnableTriggers enables all image change triggers of a deployment config and returns the names of
// their images. It fails if the config has no image change triggers.
func (c *Client) EnableTriggers(ctx context.Context, namespace, name string) (images []string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dc, err := c.apps.DeploymentConfigs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		images = nil
		for _, trigger := range dc.Spec.Triggers {
			if params := trigger.ImageChangeParams; params != nil {
				params.Automatic = true
				images = append(images, params.From.Name)
			}
		}
		if len(images) == 0 {
			return fmt.Errorf("deployment config %q has no image triggers; to add one, use oc set triggers dc/%s --from-image", name, name)
		}
		_, err = c.apps.DeploymentConfigs(namespace).Update(ctx, dc, metav1.UpdateOptions{})
		return err
	})
	return images, err
}

// Cancel cancels the deployment in progress, if any.
func (c *Client) Cancel(ctx context.Context, namespace, name string) (*appsv1.DeploymentConfig, string, error) {
	dc, rc, err := c.latest(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, "", err
	case dc.Spec.Paused:
		return nil, "", fmt.Errorf("cannot cancel the deployment of a paused deployment config %q", name)
	case rc == nil || rollout.Ended(rc):
		return dc, "no rollout is in progress", nil
	case rollout.Cancelled(rc):
		return dc, fmt.Sprintf("rollout #%d is already cancelled", rollout.Version(rc)), nil
	}
	err = c.annotate(ctx, rc, map[string]any{
		appsv1.DeploymentCancelledAnnotation: "true", appsv1.DeploymentStatusReasonAnnotation: rollout.CancelledByUser,
	})
	return dc, fmt.Sprintf("rollout #%d cancelled", rollout.Version(rc)), err
}

// Retry restarts the latest deployment. It fails unless this deployment has failed.
func (c *Client) Retry(ctx context.Context, namespace, name string) (*appsv1.DeploymentConfig, string, error) {
	dc, rc, err := c.latest(ctx, namespace, name)
	switch {
	case err != nil:
		return nil, "", err
	case dc.Spec.Paused:
		return nil, "", fmt.Errorf("unable to retry the paused deployment config %q", name)
	case rc == nil:
		return nil, "", fmt.Errorf("no rollouts found for %q", name)
	case rollout.Phase(rc) != appsv1.DeploymentStatusFailed:
		return nil, "", fmt.Errorf("rollout #%d is %s; only failed rollouts can be retried; you can start a new one with: oc rollout latest dc/%s",
			rollout.Version(rc), rollout.Phase(rc), name)
	}
	pods, err := c.core.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: rollout.DeployerSelector(rc.Name).String()})
	if err != nil {
		return nil, "", err
	}
	now := int64(0)
	for _, pod := range pods.Items { // delete them now, because the new pods have the same names
		if err := c.core.Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			return nil, "", fmt.Errorf("remove pod %q of the failed deployment: %w", pod.Name, err)
		}
	}
	err = c.annotate(ctx, rc, map[string]any{
		appsv1.DeploymentStatusAnnotation: appsv1.DeploymentStatusNew, appsv1.DeploymentStatusReasonAnnotation: nil,
		appsv1.DeploymentCancelledAnnotation: nil,
	})
	return dc, fmt.Sprintf("retried rollout #%d", rollout.Version(rc)), err
}

func (c *Client) annotate(ctx context.Context, rc *corev1.ReplicationController, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": rc.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = c.core.ReplicationControllers(rc.Namespace).Patch(ctx, rc.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
