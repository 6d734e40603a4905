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

// errTimeout is the error for a deployment that makes no progress within the strategy's timeout.
var errTimeout = errors.New("timed out")

// isSettled reports whether the status of a ReplicationController is up to date and it has no more
// pods than its spec requests.
func isSettled(rc *corev1.ReplicationController) bool {
	return rc.Status.ObservedGeneration >= rc.Generation && rc.Status.Replicas <= ptr.Deref(rc.Spec.Replicas, 1)
}

const (
	// unavailableTimeout limits how long a request is retried while the API server is unavailable.
	// The limit is generous: a control plane that was killed restarts within seconds.
	unavailableTimeout = 5 * time.Minute
	// unauthorizedTimeout limits how long a request is retried after 401 and 403 responses. Retries
	// are necessary because an API server that has just started might not have loaded all RBAC
	// rules yet.
	unauthorizedTimeout = 10 * time.Second
)

// retryRequest retries a request while the API server is unavailable or, for a short time, while it
// rejects the credentials. The request must be idempotent.
func retryRequest(ctx context.Context, request func() error) error {
	start, backoff := time.Now(), wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Cap: time.Second, Steps: 10}
	for {
		err := request()
		timeout := time.Duration(0)
		switch {
		case err == nil:
			return nil
		case isUnavailable(err):
			timeout = unavailableTimeout
		case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
			timeout = unauthorizedTimeout
		}
		if time.Since(start) > timeout || ctx.Err() != nil {
			return err
		}
		sleep(ctx, backoff.Step())
	}
}

// sleep waits for the duration d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// isUnavailable reports whether an error was caused by the network, or by a server that is starting
// or shutting down.
func isUnavailable(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err)
}

// watchObjects calls see with all objects that match options, keyed by name. It calls see initially
// and after each change, until see returns true or an error. see can store the results of its own
// updates in the map; older events do not overwrite them.
func watchObjects[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, options metav1.ListOptions, list func(metav1.ListOptions) ([]T, string, error),
	from func(context.Context, metav1.ListOptions) (watch.Interface, error), see func(map[string]P) (bool, error)) error {
	for {
		var items []T
		options.ResourceVersion = ""
		err := retryRequest(ctx, func() (err error) {
			items, options.ResourceVersion, err = list(options)
			return err
		})
		if err != nil {
			return err
		}
		byName := map[string]P{}
		for i := range items {
			byName[P(&items[i]).GetName()] = &items[i]
		}
		if done, err := see(byName); done || err != nil {
			return err
		}
		var changes watch.Interface
		err = retryRequest(ctx, func() (err error) {
			changes, err = from(ctx, options)
			return err
		})
		switch {
		case apierrors.IsGone(err) || apierrors.IsResourceExpired(err):
			continue
		case err != nil:
			return err
		}
		start := time.Now()
		if done, err := watchChanges(ctx, changes, byName, see); done || err != nil {
			return err
		}
		sleep(ctx, time.Until(start.Add(time.Second))) // at most one watch per second
	}
}

// watchChanges applies watch events to the map and calls see until see returns true or an error, or
// the server closes the watch.
func watchChanges[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, changes watch.Interface, byName map[string]P, see func(map[string]P) (bool, error)) (bool, error) {
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
			if !ok { // an error, such as an expired resource version, requires a new list
				return false, nil
			}
			if last, ok := byName[object.GetName()]; ok && last.GetUID() == object.GetUID() && last.GetGeneration() > object.GetGeneration() {
				continue
			}
			if byName[object.GetName()] = object; event.Type == watch.Deleted {
				delete(byName, object.GetName())
			}
			if done, err := see(byName); done || err != nil {
				return done, err
			}
		}
	}
}

// deployments calls watchObjects for the configuration's ReplicationControllers.
func (r *run) deployments(ctx context.Context, see func(map[string]*corev1.ReplicationController) (bool, error)) error {
	client, options := r.Core.ReplicationControllers(r.Namespace), metav1.ListOptions{LabelSelector: rollout.Selector(r.config.Name).String()}
	list := func(options metav1.ListOptions) ([]corev1.ReplicationController, string, error) {
		all, err := client.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return all.Items, all.ResourceVersion, nil
	}
	return watchObjects(ctx, options, list, client.Watch, func(byName map[string]*corev1.ReplicationController) (bool, error) {
		switch to := byName[r.to]; {
		case to == nil:
			return false, fmt.Errorf("deployment %q does not exist", r.to)
		case rollout.Ended(to):
			return false, fmt.Errorf("deployment %q was ended by another client: it is %s", r.to, rollout.Phase(to))
		}
		r.logFailure(byName[r.to])
		return see(byName)
	})
}

// logFailure logs the reason why the deployment's pods cannot be created. It logs each reason once.
func (r *run) logFailure(to *corev1.ReplicationController) {
	message := rollout.CreateFailure(to)
	if message != "" && message != r.failure {
		r.logf("FailedCreate: %s", message)
	}
	r.failure = message
}

// pods calls watchObjects for the pods that match options.
func (r *run) pods(ctx context.Context, options metav1.ListOptions, see func(byName map[string]*corev1.Pod) (bool, error)) error {
	client := r.Core.Pods(r.Namespace)
	list := func(options metav1.ListOptions) ([]corev1.Pod, string, error) {
		all, err := client.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		return all.Items, all.ResourceVersion, nil
	}
	return watchObjects(ctx, options, list, client.Watch, see)
}

// selectName returns options that select the object with the given name.
func selectName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// withTimeout calls do with a timeout, and returns errTimeout if the timeout expires.
func withTimeout(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	err := do(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return errTimeout
	}
	return err
}
