// Package deployer carries out one deployment of a DeploymentConfig: it replaces the pods of the previous one by those of a
// ReplicationController as the strategy says, and runs the hooks. It is what the image of a deployer pod runs.
//
// Everything it needs to know stands in the API, so that a deployer that was killed is simply started again: it goes on where the
// replica counts are, and a hook that has its pod is not run a second time.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.7.2.2 Deployments; github.com/openshift/api/apps/v1 for the parameters.
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

// Deployer is one run of a deployer pod.
type Deployer struct {
	// Core reads and scales ReplicationControllers, and makes the pods of hooks.
	Core coreclient.CoreV1Interface
	// Tags is where hooks tag images.
	Tags imageclient.ImageStreamTagsGetter
	// Namespace and Deployment are the ReplicationController.
	Namespace, Deployment string
	// Out is the log that people read.
	Out io.Writer
}

// run is a deployment under way.
type run struct {
	*Deployer
	config  *appsv1.DeploymentConfig
	desired int32
	// to is the deployment; from are older ones of its configuration that have pods, the one that serves first.
	to   string
	from []string
}

// Run deploys. An error says why the deployment has failed; its replica counts are left to the controllers then.
func (d *Deployer) Run(ctx context.Context) error {
	to, err := d.read(ctx, d.Deployment)
	if err != nil {
		return err
	}
	switch rollout.Phase(to) {
	case appsv1.DeploymentStatusComplete: // we were killed after the last step
		return nil
	case appsv1.DeploymentStatusFailed: // or after we had given up
		return fmt.Errorf("deploy %q: it has failed already; try again with: oc rollout retry dc/%s", to.Name, rollout.ConfigOf(to))
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
		return r.giveUp(ctx, err)
	}
	r.say("Success")
	if err := r.end(ctx, rollout.Complete); err != nil {
		return fmt.Errorf("complete deployment %q: %w", r.to, err)
	}
	return nil
}

// giveUp writes down that the deployment has failed, and returns why. What becomes of one whose deployer is told to end is the controllers' to say.
func (r *run) giveUp(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return why
	}
	if err := r.end(ctx, rollout.Fail); err != nil { // the end of the pod says it, a little later
		r.say("The failure cannot be written down: %v", err)
	}
	return why
}

// end is the last that a deployer does: it writes down how the deployment has ended. One that somebody has cancelled at the last moment, or ended, stays as it is.
func (r *run) end(ctx context.Context, how func(*corev1.ReplicationController, time.Time)) error {
	_, err := r.change(ctx, r.to, func(rc *corev1.ReplicationController) bool {
		if rollout.Cancelled(rc) || rollout.Ended(rc) {
			return false
		}
		how(rc, time.Now())
		return true
	})
	return err
}

// read reads a deployment.
func (d *Deployer) read(ctx context.Context, name string) (rc *corev1.ReplicationController, err error) {
	err = persist(ctx, func() error {
		rc, err = d.Core.ReplicationControllers(d.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read deployment %q: %w", name, err)
	}
	return rc, nil
}

// custom is what the image of a custom strategy that is ours does: as the other parameters say.
func (r *run) custom(ctx context.Context, strategy *appsv1.DeploymentStrategy) error {
	if strategy.RollingParams != nil {
		return r.rolling(ctx, *strategy.RollingParams)
	}
	return r.recreate(ctx, *ptr.Deref(&strategy.RecreateParams, &appsv1.RecreateDeploymentStrategyParams{}))
}

// findOthers finds the older deployments that have pods.
func (r *run) findOthers(ctx context.Context, to *corev1.ReplicationController) error {
	var list *corev1.ReplicationControllerList
	err := persist(ctx, func() (err error) {
		list, err = r.Core.ReplicationControllers(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: rollout.Selector(r.config.Name).String()})
		return err
	})
	if err != nil {
		return fmt.Errorf("list deployments of %q: %w", r.config.Name, err)
	}
	var others []*corev1.ReplicationController
	for i := range list.Items {
		if rollout.Version(&list.Items[i]) < rollout.Version(to) {
			others = append(others, &list.Items[i])
		}
	}
	rollout.Newest(others)
	active := rollout.Active(others)
	for _, other := range others {
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

// say writes a line of the log.
func (r *run) say(format string, values ...any) {
	fmt.Fprintf(r.Out, "--> "+format+"\n", values...)
}

// change reads a deployment and writes it back as do changes it, again and again while others write it too. It writes nothing where do says false. It
// returns the deployment as it is then.
func (r *run) change(ctx context.Context, name string, do func(*corev1.ReplicationController) bool) (rc *corev1.ReplicationController, err error) {
	client := r.Core.ReplicationControllers(r.Namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		return persist(ctx, func() (err error) {
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

// scale sets the number of pods of a deployment, and returns it.
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

// seconds is a parameter as a duration; a missing one is the default of OpenShift 3.
func seconds(value *int64, otherwise int64) time.Duration {
	return time.Duration(ptr.Deref(value, otherwise)) * time.Second
}

// The default of timeoutSeconds.
const defaultTimeout = 600
