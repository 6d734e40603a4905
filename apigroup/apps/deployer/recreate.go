package deployer

import (
	"context"
	"fmt"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// recreate runs a Recreate strategy: it stops the old pods before it starts the new pods.
func (r *run) recreate(ctx context.Context, params appsv1.RecreateDeploymentStrategyParams) error {
	if err := r.hook(ctx, "pre", params.Pre); err != nil {
		return err
	}
	timeout := seconds(params.TimeoutSeconds, defaultTimeout)
	for _, old := range r.from {
		r.logf("Scaling %s down to zero", old)
		if _, err := r.scale(ctx, old, 0); err != nil {
			return err
		}
	}
	err := withTimeout(ctx, timeout, r.waitForEnd)
	if err != nil {
		return fmt.Errorf("wait for the pods of previous deployments to end: %w", err)
	}
	if err := r.hook(ctx, "mid", params.Mid); err != nil {
		return err
	}
	if err := withTimeout(ctx, timeout, r.start); err != nil {
		return err
	}
	return r.hook(ctx, "post", params.Post)
}

// start scales up the new deployment: first to one pod and, when that pod is available, to the
// desired number of pods.
func (r *run) start(ctx context.Context) error {
	for _, step := range []int32{min(1, r.desired), r.desired} {
		r.logf("Scaling %s to %d", r.to, step)
		if err := r.atLeast(ctx, step); err != nil {
			return err
		}
		err := r.deployments(ctx, func(byName map[string]*corev1.ReplicationController) (bool, error) {
			to := byName[r.to]
			return to.Status.ObservedGeneration >= to.Generation && to.Status.AvailableReplicas >= step, nil
		})
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			return fmt.Errorf("wait for %d pods of %q to be available: %w", step, r.to, err)
		}
		if step == r.desired {
			break
		}
	}
	return nil
}

// atLeast scales the new deployment up to the given number of pods, unless it has more. It has more
// pods if an interrupted deployer has already scaled it.
func (r *run) atLeast(ctx context.Context, replicas int32) error {
	to, err := r.read(ctx, r.to)
	if err != nil {
		return err
	}
	if to.Spec.Replicas != nil && *to.Spec.Replicas >= replicas {
		return nil
	}
	_, err = r.scale(ctx, r.to, replicas)
	return err
}

// waitForEnd waits until the pods of all other deployments have terminated, so that exclusive
// resources such as volumes are free.
func (r *run) waitForEnd(ctx context.Context) error {
	selector := fmt.Sprintf("%s=%s,%s!=%s", rollout.ConfigLabel, r.config.Name, rollout.DeploymentLabel, r.to)
	return r.pods(ctx, metav1.ListOptions{LabelSelector: selector}, func(byName map[string]*corev1.Pod) (bool, error) {
		for _, pod := range byName {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return false, nil
			}
		}
		return true, nil
	})
}
