package build

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// logs is the builds/log subresource, which returns the output of a build's pod.
type logs struct{ buildStore }

var _ rest.GetterWithOptions = &logs{}

// New returns an object of the response type, for discovery.
func (*logs) New() runtime.Object { return &buildv1.BuildLog{} }

// Destroy is a no-op, because the builds resource destroys the store.
func (*logs) Destroy() {}

// GroupVersionKind returns the response kind.
func (*logs) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind("BuildLog")
}

// NewGetOptions returns the type of the query options.
func (*logs) NewGetOptions() (runtime.Object, bool, string) {
	return &buildv1.BuildLogOptions{}, false, ""
}

// Get returns a build's log as a stream. Unless options.NoWait is set, it waits until the build has
// started.
func (l *logs) Get(ctx context.Context, name string, query runtime.Object) (runtime.Object, error) {
	options, ok := query.(*buildv1.BuildLogOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query is a %T, must be BuildLogOptions", query))
	}
	build, err := l.build(ctx, name)
	if err != nil {
		return nil, err
	}
	if build, err = l.selectBuild(ctx, build, options); err != nil {
		return nil, err
	}
	if !hasStarted(build) {
		if options.NoWait {
			return &apiserver.Stream{Open: emptyLog}, nil
		}
		if build, err = waitForStart(ctx, l.deps, build.Name, logStartTimeout); err != nil {
			return nil, err
		}
	}
	return l.open(ctx, build, options)
}

// selectBuild returns the build that the options select: the named build, or another build of the
// same configuration.
func (l *logs) selectBuild(ctx context.Context, build *buildv1.Build, options *buildv1.BuildLogOptions) (*buildv1.Build, error) {
	number, config := instantiate.Number(build), instantiate.ConfigOf(build)
	switch {
	case options.Version != nil && options.Previous:
		return nil, apierrors.NewBadRequest("version and previous cannot be used together")
	case !options.Previous && (options.Version == nil || *options.Version == number):
		return build, nil
	case config == "":
		return nil, apierrors.NewBadRequest(fmt.Sprintf("build %q has no build config and therefore no other versions", build.Name))
	case options.Version != nil:
		number = *options.Version
	default:
		number--
	}
	if number < 1 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("no build #%d exists for build config %q", number, config))
	}
	return l.build(ctx, fmt.Sprintf("%s-%d", config, number))
}

// open returns a started build's log.
func (l *logs) open(ctx context.Context, build *buildv1.Build, options *buildv1.BuildLogOptions) (runtime.Object, error) {
	if build.Spec.Strategy.JenkinsPipelineStrategy != nil && build.Annotations[buildv1.BuildPodNameAnnotation] == "" {
		place := cmp.Or(build.Annotations[buildv1.BuildJenkinsConsoleLogURLAnnotation], build.Annotations[buildv1.BuildJenkinsLogURLAnnotation], "in Jenkins")
		return nil, apierrors.NewBadRequest(fmt.Sprintf("build %q is a Jenkins pipeline: its log is %s", build.Name, place))
	}
	core := l.deps.Kube.CoreV1()
	namespace, name := request.NamespaceValue(ctx), instantiate.PodName(build.Name)
	pod, err := core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	// Hide a pod that does not belong to the build, because the user might not be allowed to read
	// its log.
	if err == nil && !metav1.IsControlledBy(pod, build) {
		err = apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	if apierrors.IsNotFound(err) && build.Status.LogSnippet != "" {
		return &apiserver.Stream{Open: text(build.Status.LogSnippet + "\n")}, nil
	}
	if err != nil {
		return nil, err
	}
	logOptions := &corev1.PodLogOptions{
		Container: containerOf(pod, build, options), Follow: options.Follow, SinceSeconds: options.SinceSeconds, SinceTime: options.SinceTime,
		Timestamps: options.Timestamps, TailLines: options.TailLines, LimitBytes: options.LimitBytes,
	}
	return &apiserver.Stream{Follow: options.Follow, Open: core.Pods(namespace).GetLogs(name, logOptions).Stream}, nil
}

// containerOf returns the name of the container whose log is the build's log, or "" for the first
// container. If a pipeline failed to fetch its source, the result is the container that fetches the
// source.
func containerOf(pod *corev1.Pod, build *buildv1.Build, options *buildv1.BuildLogOptions) string {
	if options.Container != "" || build.Spec.Strategy.JenkinsPipelineStrategy == nil {
		return options.Container
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return status.Name
		}
	}
	return ""
}

func emptyLog(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

func text(content string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

// logStartTimeout is how long a log request waits for its build to start.
const logStartTimeout = 30 * time.Second

// hasStarted reports whether a build is running or has finished.
func hasStarted(build *buildv1.Build) bool {
	return build.Status.Phase == buildv1.BuildPhaseRunning || instantiate.Ended(build)
}

// isRejected reports whether a new build's pod cannot be created, for example because of a quota.
func isRejected(build *buildv1.Build) bool {
	return build.Status.Phase == buildv1.BuildPhaseNew && build.Status.Reason == buildv1.StatusReasonCannotCreateBuildPod
}

// startError returns the error for a build that does not start in time. The error causes clients to
// retry the request, unless the build's pod was rejected.
func startError(builds buildclient.BuildInterface, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	build, err := builds.Get(ctx, name, metav1.GetOptions{})
	if err == nil && isRejected(build) {
		return apierrors.NewBadRequest(fmt.Sprintf("build %q cannot start: %s", name, build.Status.Message))
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("timed out waiting for build %q to start after %s", name, timeout), 1)
}

// waitForStart waits until a build is running or has finished. If the build's pod cannot be
// created, the error contains the reason.
func waitForStart(ctx context.Context, deps apiserver.Deps, name string, timeout time.Duration) (*buildv1.Build, error) {
	release, err := apiserver.CountWait(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	client, err := buildclient.NewForConfig(deps.Loopback)
	if err != nil {
		return nil, err
	}
	builds := client.Builds(request.NamespaceValue(ctx))
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return builds.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return builds.Watch(ctx, options)
		},
	}
	event, err := watchtools.UntilWithSync(ctx, source, &buildv1.Build{}, nil, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, apierrors.NewNotFound(buildv1.Resource("builds"), name)
		}
		build, ok := event.Object.(*buildv1.Build)
		return ok && hasStarted(build), nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil:
		return nil, startError(builds, name, timeout)
	}
	return event.Object.(*buildv1.Build), nil
}
