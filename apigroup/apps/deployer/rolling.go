package deployer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// limits are how far a rolling deployment may be from the wanted number of pods.
type limits struct{ desired, surge, unavailable int32 }

func rollingLimits(desired int32, params *appsv1.RollingDeploymentStrategyParams) (limits, error) {
	quarter := intstr.FromString("25%")
	surge, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(params.MaxSurge, quarter)), int(desired), true)
	if err != nil {
		return limits{}, fmt.Errorf("read maxSurge: %w", err)
	}
	unavailable, err := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(params.MaxUnavailable, quarter)), int(desired), false)
	if err != nil {
		return limits{}, fmt.Errorf("read maxUnavailable: %w", err)
	}
	if surge == 0 && unavailable == 0 { // a share of few pods may be none; it must be possible to advance
		unavailable = 1
	}
	return limits{desired, int32(surge), min(int32(unavailable), desired)}, nil
}

// count are the pods of one side of a rolling deployment.
type count struct {
	// wanted are those of the specification, available those that serve.
	wanted, available int32
	// settled: the status is about the specification.
	settled bool
}

// next says how many pods each side should have now. Neither number goes the other way: the new one only grows.
func (l limits) next(old, new count) (oldWanted, newWanted int32) {
	oldWanted, newWanted = old.wanted, new.wanted
	if room := l.desired + l.surge - old.wanted - new.wanted; room > 0 && new.wanted < l.desired {
		newWanted = min(l.desired, new.wanted+room)
	}
	// Old pods that do not serve may all go; of those that serve, as many as are not needed.
	if spare := old.wanted + new.available - l.minimum(); spare > 0 && old.settled {
		oldWanted = max(0, old.wanted-spare)
	}
	return oldWanted, newWanted
}

// minimum is the number of pods that serve at any time.
func (l limits) minimum() int32 { return l.desired - l.unavailable }

// done says whether the new pods have replaced the old ones.
func (l limits) done(old, new count) bool {
	return old.wanted == 0 && new.wanted >= l.desired && new.settled && new.available >= max(l.minimum(), min(1, l.desired))
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
	limits, err := rollingLimits(r.desired, &params)
	if err != nil {
		return err
	}
	for _, older := range r.from[1:] {
		r.say("Scaling older deployment %s down to zero", older)
		if err := r.scale(ctx, older, 0); err != nil {
			return err
		}
	}
	if err := r.noteOriginal(ctx); err != nil {
		return err
	}
	r.say("Scaling up %s to %d, scaling down %s to 0 (keep %d pods available, don't exceed %d pods)",
		r.to, r.desired, r.from[0], limits.minimum(), limits.desired+limits.surge)
	update := &update{run: r, limits: limits, old: r.from[0], timeout: timeout, period: seconds(params.UpdatePeriodSeconds, 1)}
	if err := update.roll(ctx); err != nil {
		return err
	}
	return r.hook(ctx, "post", params.Post)
}

// noteOriginal writes down how many pods the previous deployment had.
func (r *run) noteOriginal(ctx context.Context) error {
	client := r.Core.ReplicationControllers(r.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		old, err := client.Get(ctx, r.from[0], metav1.GetOptions{})
		if err != nil || old.Annotations[rollout.OriginalAnnotation] != "" {
			return err
		}
		metav1.SetMetaDataAnnotation(&old.ObjectMeta, rollout.OriginalAnnotation, strconv.Itoa(int(ptr.Deref(old.Spec.Replicas, 1))))
		_, err = client.Update(ctx, old, metav1.UpdateOptions{})
		return err
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

// roll makes the next step whenever pods have become available or are gone. It gives up when nothing changes for the timeout.
func (u *update) roll(ctx context.Context) error {
	for {
		var old, new count
		err := within(ctx, u.timeout, func(ctx context.Context) error {
			return u.deployments(ctx, func(known map[string]*corev1.ReplicationController) (bool, error) {
				if known[u.to] == nil {
					return false, nil
				}
				old, new = countOf(known[u.old]), countOf(known[u.to])
				oldWanted, newWanted := u.next(old, new)
				return u.done(old, new) || oldWanted != old.wanted || newWanted != new.wanted, nil
			})
		})
		switch {
		case errors.Is(err, errTimeout):
			return fmt.Errorf("wait for pods of %q to be available: %w after %s without progress", u.to, err, u.timeout)
		case err != nil:
			return fmt.Errorf("follow deployments of %q: %w", u.config.Name, err)
		case u.done(old, new):
			return nil
		}
		if err := u.step(ctx, old, new); err != nil {
			return err
		}
	}
}

// step scales both sides, no sooner than a period after the last time.
func (u *update) step(ctx context.Context, old, new count) error {
	select {
	case <-time.After(time.Until(u.last.Add(u.period))):
	case <-ctx.Done():
		return ctx.Err()
	}
	oldWanted, newWanted := u.next(old, new)
	if newWanted != new.wanted {
		u.say("Scaling %s up to %d", u.to, newWanted)
		if err := u.scale(ctx, u.to, newWanted); err != nil {
			return err
		}
	}
	if oldWanted != old.wanted {
		u.say("Scaling %s down to %d", u.old, oldWanted)
		if err := u.scale(ctx, u.old, oldWanted); err != nil {
			return err
		}
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
