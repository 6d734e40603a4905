package apps

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apiserver"
)

// logs is the "log" subresource. It returns the deployer's log until the deployment is complete.
// After that, it returns the log of the deployment's first pod.
type logs struct {
	deps  apiserver.Deps
	store *registry.Store
}

var _ rest.GetterWithOptions = &logs{}

// New returns an object of the response type, for discovery.
func (*logs) New() runtime.Object { return &appsv1.DeploymentLog{} }

// Destroy is a no-op, because the deploymentconfigs resource destroys the store.
func (*logs) Destroy() {}

// GroupVersionKind returns the kind of the response.
func (*logs) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind("DeploymentLog")
}

// NewGetOptions returns the type of the query parameters.
func (*logs) NewGetOptions() (runtime.Object, bool, string) {
	return &appsv1.DeploymentLogOptions{}, false, ""
}

// Get returns the log of a deployment as a stream.
func (l *logs) Get(ctx context.Context, name string, query runtime.Object) (runtime.Object, error) {
	options, ok := query.(*appsv1.DeploymentLogOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query is a %T, must be DeploymentLogOptions", query))
	}
	object, err := l.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	dc := object.(*appsv1.DeploymentConfig)
	version, err := versionOf(dc, options)
	if err != nil {
		return nil, err
	}
	core := l.deps.Kube.CoreV1()
	namespace := request.NamespaceValue(ctx)
	rc, err := waitForStart(ctx, core, namespace, rollout.Name(name, version), options)
	if err != nil {
		return nil, err
	}
	if rc == nil {
		return &apiserver.Stream{Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }}, nil
	}
	if !metav1.IsControlledBy(rc, dc) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("replication controller %q does not belong to deployment config %q; delete it", rc.Name, dc.Name))
	}
	pod, err := podOf(ctx, core, rc)
	if err != nil {
		return nil, err
	}
	logOptions := &corev1.PodLogOptions{
		Container: options.Container, Follow: options.Follow, SinceSeconds: options.SinceSeconds, SinceTime: options.SinceTime,
		Timestamps: options.Timestamps, TailLines: options.TailLines, LimitBytes: options.LimitBytes,
	}
	return &apiserver.Stream{Follow: options.Follow, Open: core.Pods(namespace).GetLogs(pod, logOptions).Stream}, nil
}

// versionOf returns the version that a log request specifies. The default is the latest version.
func versionOf(dc *appsv1.DeploymentConfig, options *appsv1.DeploymentLogOptions) (int64, error) {
	latest := dc.Status.LatestVersion
	switch {
	case latest == 0:
		return 0, apierrors.NewBadRequest(fmt.Sprintf("no deployment exists for deployment config %q", dc.Name))
	case options.Version != nil && options.Previous:
		return 0, apierrors.NewBadRequest("version and previous cannot be used together")
	case options.Version != nil && (*options.Version <= 0 || *options.Version > latest):
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid version %d for deployment config %q: it has deployments 1 to %d", *options.Version, dc.Name, latest))
	case options.Version != nil:
		return *options.Version, nil
	case options.Previous && latest == 1:
		return 0, apierrors.NewBadRequest(fmt.Sprintf("no previous deployment exists for deployment config %q", dc.Name))
	case options.Previous:
		return latest - 1, nil
	}
	return latest, nil
}

// startTimeout is how long a log request waits for its deployment to start.
const startTimeout = 30 * time.Second

// rejectionDelay is how long a log request waits before it reports that the deployer pod cannot be
// created. The cause can be temporary: a new project might not have service accounts yet, and a
// quota might still count a pod that has terminated.
const rejectionDelay = 5 * time.Second

// waitForStart waits until a deployment's deployer is running or has finished. If options.NoWait is
// set and the deployment has not started, it returns nil without waiting. If the deployer pod
// cannot be created, the error contains the reason.
func waitForStart(ctx context.Context, core coreclient.CoreV1Interface, namespace, name string, options *appsv1.DeploymentLogOptions) (*corev1.ReplicationController, error) {
	if options.NoWait {
		rc, err := core.ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || !hasStarted(rc) {
			return nil, err
		}
		return rc, nil
	}
	release, err := apiserver.CountWait(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return core.ReplicationControllers(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return core.ReplicationControllers(namespace).Watch(ctx, options)
		},
	}
	until := func(timeout time.Duration, done func(*corev1.ReplicationController) bool) (*watch.Event, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return watchtools.UntilWithSync(ctx, source, &corev1.ReplicationController{}, nil, func(event watch.Event) (bool, error) {
			rc, ok := event.Object.(*corev1.ReplicationController)
			return ok && done(rc), nil
		})
	}
	event, err := until(rejectionDelay, hasStarted)
	if err != nil {
		event, err = until(startTimeout-rejectionDelay, func(rc *corev1.ReplicationController) bool { return hasStarted(rc) || rollout.CreateFailure(rc) != "" })
	}
	if err != nil {
		retryAfter := 0
		if options.Follow {
			retryAfter = 1 // clients retry after one second
		}
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("timed out waiting for deployment %q to start%s", name, pendingReason(ctx, core, namespace, name)), retryAfter)
	}
	rc := event.Object.(*corev1.ReplicationController)
	if !hasStarted(rc) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("deployment %q cannot start: %s", name, rollout.CreateFailure(rc)))
	}
	return rc, nil
}

// hasStarted reports whether a deployment's deployer is running or has finished.
func hasStarted(rc *corev1.ReplicationController) bool {
	return rollout.Ended(rc) || rollout.Phase(rc) == appsv1.DeploymentStatusRunning
}

// pendingReason returns the reason why a deployer pod is not running, in a form that completes an
// error message, or "".
func pendingReason(ctx context.Context, core coreclient.CoreV1Interface, namespace, deployment string) string {
	pod, err := core.Pods(namespace).Get(ctx, rollout.DeployerName(deployment), metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return fmt.Sprintf(": its pod %q waits: %s: %s", pod.Name, waiting.Reason, waiting.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf(": its pod %q has no node: %s", pod.Name, condition.Message)
		}
	}
	return ""
}

// podOf returns the name of the pod whose log serves as the deployment's log. It ignores pods that
// the deployment does not own, because the user might not be allowed to read their logs.
func podOf(ctx context.Context, core coreclient.CoreV1Interface, rc *corev1.ReplicationController) (string, error) {
	if rollout.Phase(rc) == appsv1.DeploymentStatusComplete {
		pods, err := core.Pods(rc.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(rc.Spec.Selector).String()})
		if err != nil {
			return "", err
		}
		podsOfController := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, rc) })
		if len(podsOfController) > 0 {
			first := slices.MinFunc(podsOfController, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return first.Name, nil
		}
	}
	pod, err := core.Pods(rc.Namespace).Get(ctx, rollout.DeployerName(rc.Name), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if !rollout.Owns(rc, pod) {
		return "", apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}
	return pod.Name, nil
}
