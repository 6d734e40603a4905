package deployer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// errTimeout says that nothing happened for as long as the strategy allows.
var errTimeout = errors.New("timed out")

// settled says whether the ReplicationController's status is about its present specification and its pods are no more than wanted.
func settled(rc *corev1.ReplicationController) bool {
	return rc.Status.ObservedGeneration >= rc.Generation && rc.Status.Replicas <= ptr.Deref(rc.Spec.Replicas, 1)
}

// deployments follows the ReplicationControllers of the configuration and calls see with all of them, by name, at the start and after each
// change, until it returns true or an error.
func (r *run) deployments(ctx context.Context, see func(map[string]*corev1.ReplicationController) (bool, error)) error {
	client, selector := r.Core.ReplicationControllers(r.Namespace), rollout.Selector(r.config.Name).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return client.Watch(ctx, options)
		},
	}, r.Core)
	known := map[string]*corev1.ReplicationController{}
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.ReplicationController{}, func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			rc := object.(*corev1.ReplicationController)
			known[rc.Name] = rc
		}
		return see(known)
	}, func(event watch.Event) (bool, error) {
		rc, ok := event.Object.(*corev1.ReplicationController)
		if !ok {
			return false, nil
		}
		if known[rc.Name] = rc; event.Type == watch.Deleted {
			delete(known, rc.Name)
		}
		if known[r.to] == nil {
			return false, fmt.Errorf("deployment %q is gone", r.to)
		}
		return see(known)
	})
	return err
}

// pods follows pods and calls see with each that is there and each that changes, until it returns true or an error. Gone is called for
// those that are removed; done is called once all that were there have been seen.
func (r *run) pods(ctx context.Context, options metav1.ListOptions, see func(known map[string]*corev1.Pod) (bool, error)) error {
	client := r.Core.Pods(r.Namespace)
	limit := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = options.LabelSelector, options.FieldSelector
		return o
	}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, limit(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, limit(o))
		},
	}, r.Core)
	known := map[string]*corev1.Pod{}
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			pod := object.(*corev1.Pod)
			known[pod.Name] = pod
		}
		return see(known)
	}, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return false, nil
		}
		if known[pod.Name] = pod; event.Type == watch.Deleted {
			delete(known, pod.Name)
		}
		return see(known)
	})
	return err
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
