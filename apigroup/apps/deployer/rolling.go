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

// count are the pods of one side of a rolling deployment.
type count struct {
	// wanted are those of the specification, available those that serve.
	wanted, available int32
	// settled: the status is about the specification.
	settled bool
}

// limits are those of a rolling deployment, with what follows from them.
type limits struct{ rollout.Limits }

// next says how many pods each side should have now. Neither number goes the other way: the new one only grows.
func (l limits) next(old, new count) (oldWanted, newWanted int32) {
	oldWanted, newWanted = old.wanted, l.Grow(old.wanted, new.wanted)
	// Old pods that do not serve may all go; of those that serve, as many as are not needed.
	if spare := old.wanted + new.available - l.Minimum(); spare > 0 && old.settled {
		oldWanted = max(0, old.wanted-spare)
	}
	return oldWanted, newWanted
}

// done says whether the new pods have replaced the old ones.
func (l limits) done(old, new count) bool {
	return old.wanted == 0 && new.wanted >= l.Desired && new.settled && new.available >= max(l.Minimum(), min(1, l.Desired))
}

// rolling replaces old pods by new ones step by step.
func (r *run) rolling(ctx context.Context, params appsv1.RollingDeploymentStrategyParams) error {
	if err := r.hook(ctx, "pre", params.Pre); err != nil {
		return err
	}
	timeout := seconds(params.TimeoutSeconds, defaultTimeout)
	if len(r.from) == 0 {
		if err := within(ctx, timeout, r.start); err != nil {
			return err
		}
		return r.hook(ctx, "post", params.Post)
	}
	limit, err := rollout.RollingLimits(r.desired, &params)
	if err != nil {
		return err
	}
	for _, older := range r.from[1:] {
		r.say("Scaling older deployment %s down to zero", older)
		if _, err := r.scale(ctx, older, 0); err != nil {
			return err
		}
	}
	if err := r.noteOriginal(ctx); err != nil {
		return err
	}
	r.say("Scaling up %s to %d, scaling down %s to 0 (keep %d pods available, don't exceed %d pods)",
		r.to, r.desired, r.from[0], limit.Minimum(), limit.Desired+limit.Surge)
	update := &update{run: r, limits: limits{limit}, old: r.from[0], timeout: timeout, period: seconds(params.UpdatePeriodSeconds, 1)}
	if err := update.roll(ctx); err != nil {
		return err
	}
	return r.hook(ctx, "post", params.Post)
}

// noteOriginal writes down how many pods the previous deployment had.
func (r *run) noteOriginal(ctx context.Context) error {
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

// update is a rolling deployment under way.
type update struct {
	*run
	limits
	old             string
	timeout, period time.Duration
	last            time.Time // of a change of ours
}

// roll makes the next step whenever pods have become available or are gone. It gives up when there is no step to make for the timeout.
func (u *update) roll(ctx context.Context) error {
	patient, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	patience := time.AfterFunc(u.timeout, func() { giveUp(errTimeout) })
	defer patience.Stop()
	err := u.deployments(patient, func(known map[string]*corev1.ReplicationController) (bool, error) {
		old, new := countOf(known[u.old]), countOf(known[u.to])
		oldWanted, newWanted := u.next(old, new)
		switch {
		case u.done(old, new):
			return true, nil
		case oldWanted == old.wanted && newWanted == new.wanted:
			return false, nil
		}
		patience.Stop()
		defer patience.Reset(u.timeout)
		return false, u.step(ctx, known, oldWanted, newWanted)
	})
	switch {
	case err != nil && ctx.Err() == nil && patient.Err() != nil:
		return fmt.Errorf("wait for pods of %q to be available: %w after %s without progress", u.to, errTimeout, u.timeout)
	case err != nil:
		return fmt.Errorf("follow deployments of %q: %w", u.config.Name, err)
	}
	return nil
}

// step scales both sides, no sooner than a period after the last time, and makes known what they are then.
func (u *update) step(ctx context.Context, known map[string]*corev1.ReplicationController, old, new int32) error {
	pause(ctx, time.Until(u.last.Add(u.period)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, side := range []struct {
		name, direction string
		pods            int32
	}{{u.to, "up", new}, {u.old, "down", old}} {
		rc := known[side.name]
		if rc == nil || ptr.Deref(rc.Spec.Replicas, 1) == side.pods {
			continue
		}
		u.say("Scaling %s %s to %d", side.name, side.direction, side.pods)
		rc, err := u.scale(ctx, side.name, side.pods)
		if err != nil {
			return err
		}
		known[side.name] = rc
	}
	u.last = time.Now()
	return nil
}

// countOf reads a deployment; one that is gone has no pods.
func countOf(rc *corev1.ReplicationController) count {
	if rc == nil {
		return count{settled: true}
	}
	return count{wanted: ptr.Deref(rc.Spec.Replicas, 1), available: rc.Status.AvailableReplicas, settled: settled(rc)}
}
