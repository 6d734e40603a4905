package build

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// logs is the subresource builds/log: what a build's pod has printed.
type logs struct{ starter }

var _ rest.GetterWithOptions = &logs{}

// New makes what discovery calls the answer.
func (*logs) New() runtime.Object { return &buildv1.BuildLog{} }

// Destroy has nothing to give back: the store is the builds'.
func (*logs) Destroy() {}

// GroupVersionKind is the answer's.
func (*logs) GroupVersionKind(gv schema.GroupVersion) schema.GroupVersionKind {
	return gv.WithKind("BuildLog")
}

// NewGetOptions makes the query.
func (*logs) NewGetOptions() (runtime.Object, bool, string) {
	return &buildv1.BuildLogOptions{}, false, ""
}

// Get waits until the build has begun and gives its log as a stream.
func (l *logs) Get(ctx context.Context, name string, query runtime.Object) (runtime.Object, error) {
	options, ok := query.(*buildv1.BuildLogOptions)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("the query is a %T, want BuildLogOptions", query))
	}
	build, err := l.build(ctx, name)
	if err != nil {
		return nil, err
	}
	if build, err = l.which(ctx, build, options); err != nil {
		return nil, err
	}
	if !begun(build) {
		if options.NoWait {
			return &apiserver.Stream{Open: nothing}, nil
		}
		if build, err = begin(ctx, l.deps, build.Name, startLimit); err != nil {
			return nil, err
		}
	}
	return l.of(ctx, build, options)
}

// which is the build whose log is wanted: the one asked for, or one before it.
func (l *logs) which(ctx context.Context, build *buildv1.Build, options *buildv1.BuildLogOptions) (*buildv1.Build, error) {
	number, config := instantiate.Number(build), instantiate.ConfigOf(build)
	switch {
	case options.Version != nil && options.Previous:
		return nil, errors.NewBadRequest("both a version and the previous one are wanted")
	case !options.Previous && (options.Version == nil || *options.Version == number):
		return build, nil
	case config == "":
		return nil, errors.NewBadRequest(fmt.Sprintf("build %q belongs to no build config and has no other versions", build.Name))
	case options.Version != nil:
		number = *options.Version
	default:
		number--
	}
	if number < 1 {
		return nil, errors.NewBadRequest(fmt.Sprintf("no build #%d exists for build config %q", number, config))
	}
	return l.build(ctx, fmt.Sprintf("%s-%d", config, number))
}

// of gives the log of a build that has begun.
func (l *logs) of(ctx context.Context, build *buildv1.Build, options *buildv1.BuildLogOptions) (runtime.Object, error) {
	if build.Spec.Strategy.JenkinsPipelineStrategy != nil {
		return nil, errors.NewBadRequest(fmt.Sprintf("build %q is a pipeline, whose log Jenkins has", build.Name))
	}
	core, err := coreclient.NewForConfig(l.deps.Loopback)
	if err != nil {
		return nil, err
	}
	namespace, name := request.NamespaceValue(ctx), instantiate.PodName(build.Name)
	pod, err := core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && !metav1.IsControlledBy(pod, build) { // whoever may read logs of builds may not read those of all pods
		err = errors.NewNotFound(corev1.Resource("pods"), name)
	}
	if errors.IsNotFound(err) && build.Status.LogSnippet != "" {
		return &apiserver.Stream{Open: text(build.Status.LogSnippet + "\n")}, nil
	}
	if err != nil {
		return nil, err
	}
	of := &corev1.PodLogOptions{
		Container: options.Container, Follow: options.Follow, SinceSeconds: options.SinceSeconds, SinceTime: options.SinceTime,
		Timestamps: options.Timestamps, TailLines: options.TailLines, LimitBytes: options.LimitBytes,
	}
	return &apiserver.Stream{Follow: options.Follow, Open: core.Pods(namespace).GetLogs(name, of).Stream}, nil
}

func nothing(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }

func text(content string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
}

// startLimit is how long a log waits for its build to begin.
const startLimit = 30 * time.Second

// begun says whether a build runs or has run.
func begun(build *buildv1.Build) bool {
	return build.Status.Phase == buildv1.BuildPhaseRunning || instantiate.Ended(build)
}

// begin waits until a build runs or has run, for a while.
func begin(ctx context.Context, deps apiserver.Deps, name string, limit time.Duration) (*buildv1.Build, error) {
	client, err := buildclient.NewForConfig(deps.Loopback)
	if err != nil {
		return nil, err
	}
	builds := client.Builds(request.NamespaceValue(ctx))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return builds.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return builds.Watch(ctx, options)
		},
	}
	event, err := watchtools.UntilWithSync(ctx, source, &buildv1.Build{}, nil, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return false, errors.NewNotFound(buildv1.Resource("builds"), name)
		}
		build, ok := event.Object.(*buildv1.Build)
		return ok && begun(build), nil
	})
	switch {
	case errors.IsNotFound(err):
		return nil, err
	case err != nil:
		return nil, errors.NewTimeoutError(fmt.Sprintf("timed out waiting for build %q to start after %s", name, limit), 1)
	}
	return event.Object.(*buildv1.Build), nil
}
