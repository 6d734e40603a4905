package build

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// binarySubresource is the name of the subresource that takes a build's source in its body.
const binarySubresource = "instantiatebinary"

// instantiateBinary is the subresource buildconfigs/instantiatebinary: it starts a build whose source is the body of the request. The body goes to
// the build's pod as it comes, and is nowhere in memory or on disk here.
type instantiateBinary struct{ starter }

var _ rest.Connecter = &instantiateBinary{}

// New makes the options, for discovery.
func (*instantiateBinary) New() runtime.Object { return &buildv1.BinaryBuildRequestOptions{} }

// Destroy has nothing to give back.
func (*instantiateBinary) Destroy() {}

// NewConnectOptions makes the query.
func (*instantiateBinary) NewConnectOptions() (runtime.Object, bool, string) {
	return &buildv1.BinaryBuildRequestOptions{}, false, ""
}

// ConnectMethods are the methods of HTTP that it answers.
func (*instantiateBinary) ConnectMethods() []string { return []string{http.MethodPost} }

// Connect makes what answers the request: the build, once its pod has the whole source.
func (i *instantiateBinary) Connect(ctx context.Context, name string, query runtime.Object, responder rest.Responder) (http.Handler, error) {
	options, ok := query.(*buildv1.BinaryBuildRequestOptions)
	if !ok {
		return nil, errors.NewBadRequest(fmt.Sprintf("the query is a %T, want BinaryBuildRequestOptions", query))
	}
	if _, err := i.config(ctx, name); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		build, err := i.take(request.WithNamespace(r.Context(), request.NamespaceValue(ctx)), name, options, r.Body)
		if err != nil {
			responder.Error(err)
			return
		}
		responder.Object(http.StatusCreated, build)
	}), nil
}

// binaryLimit is how long the source of a build waits for its pod to run.
const binaryLimit = 5 * time.Minute

// take starts a build and gives it its source. A build that does not get all of it fails.
func (i *instantiateBinary) take(ctx context.Context, name string, options *buildv1.BinaryBuildRequestOptions, source io.Reader) (*buildv1.Build, error) {
	build, err := i.start(ctx, name, binaryRequest(name, options))
	if build == nil {
		return nil, err
	}
	cancel := func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer done()
		_ = i.breakOff(ctx, build.Name) // the build fails by itself when it cannot be ended
	}
	if err != nil {
		cancel()
		return nil, err
	}
	running, err := begin(ctx, i.deps, build.Name, binaryLimit)
	if err == nil && running.Status.Phase != buildv1.BuildPhaseRunning {
		err = errors.NewBadRequest(fmt.Sprintf("build %q is %s and takes no source: %s", build.Name, running.Status.Phase, running.Status.Message))
	}
	if err == nil {
		err = i.send(ctx, running, &whole{source, cancel})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return i.build(ctx, build.Name)
}

// binaryRequest is a query as a request.
func binaryRequest(name string, options *buildv1.BinaryBuildRequestOptions) *buildv1.BuildRequest {
	asked := &buildv1.BuildRequest{Binary: &buildv1.BinaryBuildSource{AsFile: options.AsFile}, TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Build binary source"}}}
	asked.Name = name
	if options.Commit != "" || options.Message != "" {
		asked.Revision = &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{
			Commit: options.Commit, Message: options.Message,
			Author:    buildv1.SourceControlUser{Name: options.AuthorName, Email: options.AuthorEmail},
			Committer: buildv1.SourceControlUser{Name: options.CommitterName, Email: options.CommitterEmail},
		}}
	}
	return asked
}

// whole calls broken, before its reader's error looks like the end of the source to the one who reads.
type whole struct {
	io.Reader
	broken func()
}

// Read reads.
func (w *whole) Read(into []byte) (int, error) {
	n, err := w.Reader.Read(into)
	if err != nil && err != io.EOF {
		w.broken()
	}
	return n, err
}

// send gives a source to the standard input of a build's pod.
func (i *instantiateBinary) send(ctx context.Context, build *buildv1.Build, source io.Reader) error {
	core, err := coreclient.NewForConfig(i.deps.Loopback)
	if err != nil {
		return err
	}
	pod, err := core.Pods(build.Namespace).Get(ctx, instantiate.PodName(build.Name), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("find the pod of build %q: %w", build.Name, err)
	}
	if !metav1.IsControlledBy(pod, build) {
		return errors.NewBadRequest(fmt.Sprintf("pod %q is not the one of build %q", pod.Name, build.Name))
	}
	attach := core.RESTClient().Post().Namespace(build.Namespace).Resource("pods").Name(pod.Name).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Stdin: true, Container: pod.Spec.Containers[0].Name}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(i.deps.Loopback, http.MethodPost, attach.URL())
	if err != nil {
		return fmt.Errorf("attach to the pod of build %q: %w", build.Name, err)
	}
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: source}); err != nil {
		return errors.NewInternalError(fmt.Errorf("send source to the pod of build %q: %w", build.Name, err))
	}
	return nil
}

// breakOff asks for the end of a build that does not get its source.
func (s starter) breakOff(ctx context.Context, name string) error {
	_, _, err := s.store("builds").Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, stored runtime.Object) (runtime.Object, error) {
			build := stored.DeepCopyObject().(*buildv1.Build)
			if status := &build.Status; !instantiate.Ended(build) && !status.Cancelled {
				status.Cancelled = true
				status.Reason, status.Message = buildv1.StatusReasonFetchSourceFailed, "The source of the build broke off while it was sent, or was not sent at all."
			}
			return build, nil
		}), nil, nil, false, &metav1.UpdateOptions{})
	return err
}
