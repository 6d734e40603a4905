package deployer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// errTimeout says that nothing happened for as long as the strategy allows.
var errTimeout = errors.New("timed out")

// settled says whether the ReplicationController's status is about its present specification and its pods are no more than wanted.
func settled(rc *corev1.ReplicationController) bool {
	return rc.Status.ObservedGeneration >= rc.Generation && rc.Status.Replicas <= ptr.Deref(rc.Spec.Replicas, 1)
}

const (
	// awayFor is how long a server that does not answer is waited for: a control plane that was killed is back within seconds.
	awayFor = 5 * time.Minute
	// strangeFor is how long it is waited for when it does not know us, or our rights: one that starts has not read all of them yet.
	strangeFor = 10 * time.Second
)

// persist makes a request again while the server is away. What it makes must not mind that an earlier one has come through after all.
func persist(ctx context.Context, request func() error) error {
	began, again := time.Now(), wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 10}
	for {
		err := request()
		patience := time.Duration(0)
		switch {
		case err == nil:
			return nil
		case away(err):
			patience = awayFor
		case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
			patience = strangeFor
		}
		if time.Since(began) > patience || ctx.Err() != nil {
			return err
		}
		pause(ctx, again.Step())
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, long time.Duration) {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
}

// away says whether an error comes from the way to the server or from one that starts or ends, and not from the server's rules.
func away(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err)
}

// follow calls see with all objects that options select, by name, at once and after each change, until it returns true or an error. What see itself
// changes it may put into the map: changes from before are passed over.
func follow[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, options metav1.ListOptions, list func(metav1.ListOptions) ([]T, string, error),
	from func(context.Context, metav1.ListOptions) (watch.Interface, error), see func(map[string]P) (bool, error)) error {
	for {
		var items []T
		options.ResourceVersion = ""
		err := persist(ctx, func() (err error) {
			items, options.ResourceVersion, err = list(options)
			return err
		})
		if err != nil {
			return err
		}
		known := map[string]P{}
		for i := range items {
			known[P(&items[i]).GetName()] = &items[i]
		}
		if done, err := see(known); done || err != nil {
			return err
		}
		var changes watch.Interface
		err = persist(ctx, func() (err error) {
			changes, err = from(ctx, options)
			return err
		})
		switch {
		case apierrors.IsGone(err) || apierrors.IsResourceExpired(err):
			continue
		case err != nil:
			return err
		}
		began := time.Now()
		if done, err := each(ctx, changes, known, see); done || err != nil {
			return err
		}
		pause(ctx, time.Until(began.Add(time.Second))) // a server that ends each watch at once is not asked at once
	}
}

// each takes changes up until see returns true or an error, or there are no more of them: the server ends a watch now and then.
func each[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, changes watch.Interface, known map[string]P, see func(map[string]P) (bool, error)) (bool, error) {
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case event, open := <-changes.ResultChan():
			if !open {
				return false, nil
			}
			object, ok := any(event.Object).(P)
			if !ok { // an error, such as that the version is too old: all are read again
				return false, nil
			}
			if last, found := known[object.GetName()]; found && last.GetUID() == object.GetUID() && last.GetGeneration() > object.GetGeneration() {
				continue
			}
			if known[object.GetName()] = object; event.Type == watch.Deleted {
				delete(known, object.GetName())
			}
			if done, err := see(known); done || err != nil {
				return done, err
			}
		}
	}
}

// deployments follows the ReplicationControllers of the configuration.
func (r *run) deployments(ctx context.Context, see func(map[string]*corev1.ReplicationController) (bool, error)) error {
	client, options := r.Core.ReplicationControllers(r.Namespace), metav1.ListOptions{LabelSelector: rollout.Selector(r.config.Name).String()}
	list := func(options metav1.ListOptions) ([]corev1.ReplicationController, string, error) {
		all, err := client.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return all.Items, all.ResourceVersion, nil
	}
	return follow(ctx, options, list, client.Watch, func(known map[string]*corev1.ReplicationController) (bool, error) {
		switch to := known[r.to]; {
		case to == nil:
			return false, fmt.Errorf("deployment %q is gone", r.to)
		case rollout.Ended(to):
			return false, fmt.Errorf("somebody has ended deployment %q: it is %s", r.to, rollout.Phase(to))
		}
		return see(known)
	})
}

// pods follows the pods that options select.
func (r *run) pods(ctx context.Context, options metav1.ListOptions, see func(known map[string]*corev1.Pod) (bool, error)) error {
	client := r.Core.Pods(r.Namespace)
	list := func(options metav1.ListOptions) ([]corev1.Pod, string, error) {
		all, err := client.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return all.Items, all.ResourceVersion, nil
	}
	return follow(ctx, options, list, client.Watch, see)
}

// named selects one object.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// within gives do a time, and says errTimeout when that has passed.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return errTimeout
	}
	return err
}
