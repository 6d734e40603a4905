package deployer

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// count holds the pod counts of the old or the new deployment.
type count struct {
	// desired is the number of pods in the spec. available is the number of available pods.
	desired, available int32
	// complete means that the deployment's status is up to date.
	complete bool
}

// limits extends rollout.Limits with the calculation of a rolling deployment's next step.
type limits struct{ rollout.Limits }

// next returns the numbers of old and new pods after the next step. The number of new pods never
// decreases, and the number of old pods never increases.
func (l limits) next(old, new count) (oldWanted, newWanted int32) {
	oldWanted, newWanted = old.desired, l.Grow(old.desired, new.desired)
	// Keep only the old pods that are needed for the minimum in addition to the available new pods.
	// Kubernetes deletes unavailable pods first.
	if spare := old.desired + new.available - l.Minimum(); spare > 0 && old.complete {
		oldWanted = max(0, old.desired-spare)
	}
	return oldWanted, newWanted
}

// done reports whether the new pods have replaced the old pods.
func (l limits) done(old, new count) bool {
	return old.desired == 0 && new.desired >= l.Desired && new.complete && new.available >= max(l.Minimum(), min(1, l.Desired))
}

// rolling runs a Rolling strategy: it replaces the old pods with new pods in steps.
func (r *run) rolling(ctx context.Context, params appsv1.RollingDeploymentStrategyParams) error {
	if err := r.hook(ctx, "pre", params.Pre); err != nil {
		return err
	}
	timeout := seconds(params.TimeoutSeconds, defaultTimeout)
	if len(r.from) == 0 {
		if err := withTimeout(ctx, timeout, r.start); err != nil {
			return err
		}
		return r.hook(ctx, "post", params.Post)
	}
	limit, err := rollout.RollingLimits(r.desired, &params)
	if err != nil {
		return err
	}
	for _, older := range r.from[1:] {
		r.logf("Scaling older deployment %s down to zero", older)
		if _, err := r.scale(ctx, older, 0); err != nil {
			return err
		}
	}
	if err := r.recordOriginal(ctx); err != nil {
		return err
	}
	r.logf("Scaling up %s to %d, scaling down %s to 0 (keep %d pods available, don't exceed %d pods)",
		r.to, r.desired, r.from[0], limit.Minimum(), limit.Desired+limit.Surge)
	update := &update{run: r, limits: limits{limit}, old: r.from[0], timeout: timeout, period: seconds(params.UpdatePeriodSeconds, 1)}
	if err := update.roll(ctx); err != nil {
		return err
	}
	return r.hook(ctx, "post", params.Post)
}

// recordOriginal records the previous deployment's number of pods in an annotation, unless it is
// already recorded.
func (r *run) recordOriginal(ctx context.Context) error {
	_, err := r.change(ctx, r.from[0], func(old *corev1.ReplicationController) bool {
		if old.Annotations[rollout.OriginalAnnotation] != "" {
			return false
		}
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, rollout.OriginalAnnotation, strconv.Itoa(int(ptr.Deref(old.Spec.Replicas, 1))))
		return true
	})
	if err != nil {
		return fmt.Errorf("annotate deployment %q: %w", r.from[0], err)
	}
	return nil
}

// update is the state of a rolling deployment.
type update struct {
	*run
	limits
	old             string
	timeout, period time.Duration
	last            time.Time // time of the last scaling
}

// roll performs the next step whenever pods become available or terminate. It returns an error if
// no step is possible within the timeout.
func (u *update) roll(ctx context.Context) error {
	patient, markFailed := context.WithCancelCause(ctx)
	defer markFailed(nil)
	timeout := time.AfterFunc(u.timeout, func() { markFailed(errTimeout) })
	defer timeout.Stop()
	err := u.deployments(patient, func(byName map[string]*corev1.ReplicationController) (bool, error) {
		old, new := countOf(byName[u.old]), countOf(byName[u.to])
		oldWanted, newWanted := u.next(old, new)
		switch {
		case u.done(old, new):
			return true, nil
		case oldWanted == old.desired && newWanted == new.desired:
			return false, nil
		}
		timeout.Stop()
		defer timeout.Reset(u.timeout)
		return false, u.step(ctx, byName, oldWanted, newWanted)
	})
	switch {
	case err != nil && ctx.Err() == nil && patient.Err() != nil:
		return fmt.Errorf("wait for pods of %q to be available: %w after %s without progress", u.to, errTimeout, u.timeout)
	case err != nil:
		return fmt.Errorf("watch deployments of %q: %w", u.config.Name, err)
	}
	return nil
}

// step scales the new and the old deployment, and stores the results in byName. It first waits
// until the update period has passed since the last step.
func (u *update) step(ctx context.Context, byName map[string]*corev1.ReplicationController, old, new int32) error {
	sleep(ctx, time.Until(u.last.Add(u.period)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, side := range []struct {
		name, direction string
		pods            int32
	}{{u.to, "up", new}, {u.old, "down", old}} {
		rc := byName[side.name]
		if rc == nil || ptr.Deref(rc.Spec.Replicas, 1) == side.pods {
			continue
		}
		u.logf("Scaling %s %s to %d", side.name, side.direction, side.pods)
		rc, err := u.scale(ctx, side.name, side.pods)
		if err != nil {
			return err
		}
		byName[side.name] = rc
	}
	u.last = time.Now()
	return nil
}

// countOf returns the pod counts of a deployment, which can be nil.
func countOf(rc *corev1.ReplicationController) count {
	if rc == nil {
		return count{complete: true}
	}
	return count{desired: ptr.Deref(rc.Spec.Replicas, 1), available: rc.Status.AvailableReplicas, complete: isSettled(rc)}
}
