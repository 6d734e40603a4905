package debug

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/interrupt"
	"k8s.io/utils/exec"
)

// rehearse returns the pod for a dry run, without creating it. If dry is DryRunServer, the server
// validates the pod.
func (d *debugging) rehearse(ctx context.Context, pod *corev1.Pod, dry util.DryRunStrategy) (*corev1.Pod, error) {
	if dry != util.DryRunServer {
		return pod, nil
	}
	return d.clients.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// run creates the pod, attaches to it, and then deletes it, even if the process receives a signal.
// If the debug command fails, run returns an error that contains the exit code.
func (d *debugging) run(ctx context.Context, pod *corev1.Pod, original string) error {
	pods := d.clients.CoreV1().Pods(pod.Namespace)
	if err := d.findNode(ctx, pod); err != nil {
		return err
	}
	fmt.Fprintf(d.ErrOut, "Debugging with pod/%s, original command: %s\n", pod.Name, original)
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	handler := interrupt.New(func(os.Signal) { os.Exit(1) }, func() {
		fmt.Fprintln(d.ErrOut, "\nRemoving debug pod ...")
		at, now := metav1.NewUIDPreconditions(string(pod.UID)), int64(0)
		err := pods.Delete(context.WithoutCancel(ctx), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: at})
		if err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(d.ErrOut, "error: unable to delete the debug pod %q: %v\n", pod.Name, err)
		}
	})
	return handler.Run(func() error { return d.join(ctx, pod, handler) })
}

// findNode returns an error if the pod's node does not exist, because the pod would never start. It
// ignores other errors, because not every user is allowed to get nodes.
func (d *debugging) findNode(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return nil
	}
	if _, err := d.clients.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("unable to create the debug pod %q on node %q: the node does not exist", pod.Name, pod.Spec.NodeName)
	}
	return nil
}

// join waits until the container starts, and then prints the container's output until the container
// exits. If the exit code is not zero, join returns it as an error.
func (d *debugging) join(ctx context.Context, pod *corev1.Pod, handler *interrupt.Handler) error {
	container := pod.Annotations[sourceContainer]
	fmt.Fprintln(d.ErrOut, "Waiting for pod to start ...")
	waiting, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	pod, err := d.wait(waiting, pod, func(pod *corev1.Pod) (bool, error) { return started(pod, container) })
	if err != nil {
		return err
	}
	if d.input && stateOf(pod, container).Running != nil {
		fmt.Fprintln(d.ErrOut, "If you don't see a command prompt, try pressing enter.")
		return d.attach(pod, container, handler)
	}
	if err := d.logs(ctx, pod, container); err != nil {
		return err
	}
	pod, err = d.wait(ctx, pod, func(pod *corev1.Pod) (bool, error) { return hasEnded(pod, container), nil })
	if err != nil {
		return err
	}
	end := stateOf(pod, container).Terminated
	switch {
	case end == nil:
		return fmt.Errorf("pod %q has failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message)
	case end.ExitCode != 0:
		return exec.CodeExitError{Err: fmt.Errorf("command ended with exit code %d", end.ExitCode), Code: int(end.ExitCode)}
	}
	return nil
}

// wait watches the pod until it meets a condition, and returns the pod.
func (d *debugging) wait(ctx context.Context, pod *corev1.Pod, is func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	pods, name := d.clients.CoreV1().Pods(pod.Namespace), fields.OneTermEqualSelector("metadata.name", pod.Name).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = name
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = name
			return pods.Watch(ctx, options)
		},
	}, d.clients)
	errRemoved := errors.New("it was removed")
	exists := func(all cache.Store) (bool, error) {
		if len(all.ListKeys()) == 0 {
			return false, errRemoved
		}
		return false, nil
	}
	event, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, exists, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if event.Type == watch.Deleted || !ok {
			return false, errRemoved
		}
		return is(pod)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for pod %q: %w", pod.Name, err)
	}
	return event.Object.(*corev1.Pod), nil
}

// started reports whether the container has started. It returns an error if the container cannot
// start.
func started(pod *corev1.Pod, container string) (bool, error) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		never := []string{"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}
		if waiting := status.State.Waiting; waiting != nil && slices.Contains(never, waiting.Reason) {
			return false, fmt.Errorf("container %q cannot start: %s: %s", status.Name, waiting.Reason, waiting.Message)
		}
	}
	return stateOf(pod, container).Running != nil || hasEnded(pod, container), nil
}

// hasEnded reports whether the container, or the whole pod, has terminated.
func hasEnded(pod *corev1.Pod, container string) bool {
	return stateOf(pod, container).Terminated != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func stateOf(pod *corev1.Pod, container string) (state corev1.ContainerState) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.State
		}
	}
	return state
}
