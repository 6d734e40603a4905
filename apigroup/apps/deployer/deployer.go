// Package deployer implements the program that runs in deployer pods. It runs one deployment of a
// DeploymentConfig. A deployment is a ReplicationController. The program replaces the pods of the
// previous deployment with the pods of the new deployment, and runs the hooks.
//
// It keeps all state in the API. Therefore, a restarted deployer continues from the replica counts,
// and does not repeat a hook that already has a pod.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2.2 Deployments;
// github.com/openshift/api/apps/v1 for the parameters.
package deployer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// Deployer runs a deployment.
type Deployer struct {
	// Core reads and scales ReplicationControllers, and creates hook pods.
	Core coreclient.CoreV1Interface
	// Tags tags images into image streams on behalf of hooks.
	Tags imageclient.ImageStreamTagsGetter
	// Namespace and Deployment identify the ReplicationController.
	Namespace, Deployment string
	// Out receives the deployer's log.
	Out io.Writer
}

// run is the state of a single Run call. A restarted deployer begins with a new run.
type run struct {
	*Deployer
	config  *appsv1.DeploymentConfig
	desired int32
	// to is the name of the deployment. from lists the names of the configuration's older
	// deployments that have pods, active deployment first.
	to   string
	from []string
	// failure is the reason why the deployment's pods cannot be created, or "".
	failure string
}

// Run runs the deployment. If it fails, the controllers restore the replica counts.
func (d *Deployer) Run(ctx context.Context) error {
	to, err := d.read(ctx, d.Deployment)
	if err != nil {
		return err
	}
	switch rollout.Phase(to) {
	case appsv1.DeploymentStatusComplete: // an earlier deployer was killed after its last step
		return nil
	case appsv1.DeploymentStatusFailed: // an earlier deployer was killed after the failure
		return fmt.Errorf("deploy %q: it has already failed: retry it with oc rollout retry dc/%s", to.Name, rollout.ConfigOf(to))
	}
	r := &run{Deployer: d, to: to.Name}
	if r.config, err = rollout.Config(to); err != nil {
		return err
	}
	if r.desired, err = rollout.Desired(to); err != nil {
		return err
	}
	if err := r.findOthers(ctx, to); err != nil {
		return err
	}
	switch strategy := r.config.Spec.Strategy; strategy.Type {
	case appsv1.DeploymentStrategyTypeRecreate:
		err = r.recreate(ctx, *ptr.Deref(&strategy.RecreateParams, &appsv1.RecreateDeploymentStrategyParams{}))
	case appsv1.DeploymentStrategyTypeRolling:
		err = r.rolling(ctx, *ptr.Deref(&strategy.RollingParams, &appsv1.RollingDeploymentStrategyParams{}))
	case appsv1.DeploymentStrategyTypeCustom:
		err = r.custom(ctx, &strategy)
	default:
		err = fmt.Errorf("deploy %q: unknown strategy %q", r.to, strategy.Type)
	}
	if err != nil {
		return r.markFailed(ctx, err)
	}
	r.logf("Success")
	if err := r.end(ctx, rollout.Complete); err != nil {
		return fmt.Errorf("complete deployment %q: %w", r.to, err)
	}
	return nil
}

// markFailed marks the deployment as failed, and returns err. If ctx is done, markFailed leaves the
// deployment unchanged: the controllers mark it as failed when the pod terminates.
func (r *run) markFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	// If end fails, the controllers mark the deployment as failed when the pod terminates.
	if err := r.end(ctx, rollout.Fail); err != nil {
		r.logf("Cannot mark the deployment as failed: %v", err)
	}
	return err
}

// end marks the deployment as complete or failed by calling record. It does not change a deployment
// that has been canceled or has already finished.
func (r *run) end(ctx context.Context, record func(*corev1.ReplicationController, time.Time)) error {
	_, err := r.change(ctx, r.to, func(rc *corev1.ReplicationController) bool {
		if rollout.Cancelled(rc) || rollout.Ended(rc) {
			return false
		}
		record(rc, time.Now())
		return true
	})
	return err
}

// read returns the named deployment. It retries the request while the API server is unavailable.
func (d *Deployer) read(ctx context.Context, name string) (rc *corev1.ReplicationController, err error) {
	err = retryRequest(ctx, func() error {
		rc, err = d.Core.ReplicationControllers(d.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read deployment %q: %w", name, err)
	}
	return rc, nil
}

// custom runs a Custom strategy that uses the platform's deployer image. The strategy's parameters
// determine whether the deployment is Rolling or Recreate.
func (r *run) custom(ctx context.Context, strategy *appsv1.DeploymentStrategy) error {
	if strategy.RollingParams != nil {
		return r.rolling(ctx, *strategy.RollingParams)
	}
	return r.recreate(ctx, *ptr.Deref(&strategy.RecreateParams, &appsv1.RecreateDeploymentStrategyParams{}))
}

// findOthers sets r.from to the older deployments that have pods.
func (r *run) findOthers(ctx context.Context, to *corev1.ReplicationController) error {
	var list *corev1.ReplicationControllerList
	err := retryRequest(ctx, func() (err error) {
		list, err = r.Core.ReplicationControllers(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: rollout.Selector(r.config.Name).String()})
		return err
	})
	if err != nil {
		return fmt.Errorf("list deployments of %q: %w", r.config.Name, err)
	}
	var controllers []*corev1.ReplicationController
	for i := range list.Items {
		if rollout.Version(&list.Items[i]) < rollout.Version(to) {
			controllers = append(controllers, &list.Items[i])
		}
	}
	rollout.Newest(controllers)
	active := rollout.Active(controllers)
	for _, other := range controllers {
		switch {
		case ptr.Deref(other.Spec.Replicas, 1) == 0 && other.Status.Replicas == 0:
		case other == active:
			r.from = slices.Insert(r.from, 0, other.Name)
		default:
			r.from = append(r.from, other.Name)
		}
	}
	return nil
}

// logf writes a line to the log.
func (r *run) logf(format string, values ...any) {
	fmt.Fprintf(r.Out, "--> "+format+"\n", values...)
}

// change applies do to a deployment, updates it, and retries on conflicts. If do returns false,
// change updates nothing. It returns the current deployment.
func (r *run) change(ctx context.Context, name string, do func(*corev1.ReplicationController) bool) (rc *corev1.ReplicationController, err error) {
	client := r.Core.ReplicationControllers(r.Namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		return retryRequest(ctx, func() (err error) {
			rc, err = client.Get(ctx, name, metav1.GetOptions{})
			if err != nil || !do(rc) {
				return err
			}
			rc, err = client.Update(ctx, rc, metav1.UpdateOptions{})
			return err
		})
	})
	return rc, err
}

// scale sets a deployment's number of replicas and returns the updated deployment.
func (r *run) scale(ctx context.Context, name string, replicas int32) (*corev1.ReplicationController, error) {
	rc, err := r.change(ctx, name, func(rc *corev1.ReplicationController) bool {
		same := ptr.Deref(rc.Spec.Replicas, 1) == replicas
		rc.Spec.Replicas = &replicas
		return !same
	})
	if err != nil {
		return nil, fmt.Errorf("scale deployment %q to %d: %w", name, replicas, err)
	}
	return rc, nil
}

// seconds converts an optional parameter in seconds to a duration. fallback is the default, in
// seconds.
func seconds(value *int64, fallback int64) time.Duration {
	return time.Duration(ptr.Deref(value, fallback)) * time.Second
}

// defaultTimeout is the default of timeoutSeconds, in seconds.
const defaultTimeout = 600
