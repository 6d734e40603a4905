package build

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// binarySubresource is the name of the subresource that receives the source of a binary build.
const binarySubresource = "instantiatebinary"

// instantiateBinary is the buildconfigs/instantiatebinary subresource. It instantiates a
// configuration and uses the request body as the source. It streams the body to the build's pod
// without storing it.
type instantiateBinary struct{ buildStore }

var _ rest.Connecter = &instantiateBinary{}

// New returns an object of the options type, for discovery.
func (*instantiateBinary) New() runtime.Object { return &buildv1.BinaryBuildRequestOptions{} }

// Destroy implements rest.Storage.
func (*instantiateBinary) Destroy() {}

// NewConnectOptions returns the type of the query options.
func (*instantiateBinary) NewConnectOptions() (runtime.Object, bool, string) {
	return &buildv1.BinaryBuildRequestOptions{}, false, ""
}

// ConnectMethods returns the accepted HTTP methods.
func (*instantiateBinary) ConnectMethods() []string { return []string{http.MethodPost} }

// Connect returns a handler that sends the request body to the build's pod and then responds with
// the build.
func (i *instantiateBinary) Connect(ctx context.Context, name string, query runtime.Object, responder rest.Responder) (http.Handler, error) {
	options, ok := query.(*buildv1.BinaryBuildRequestOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the query is a %T, must be BinaryBuildRequestOptions", query))
	}
	if _, err := i.config(ctx, name); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		build, err := i.upload(request.WithNamespace(r.Context(), request.NamespaceValue(ctx)), name, options, r.Body)
		if err != nil {
			responder.Error(err)
			return
		}
		responder.Object(http.StatusCreated, build)
	}), nil
}

// podStartTimeout is how long an upload waits for the build's pod to start.
const podStartTimeout = 5 * time.Minute

// upload instantiates a configuration and sends the source to the build's pod. If it cannot send
// the complete source, it cancels the build.
func (i *instantiateBinary) upload(ctx context.Context, name string, options *buildv1.BinaryBuildRequestOptions, source io.Reader) (*buildv1.Build, error) {
	build, err := i.start(ctx, name, binaryRequest(name, options))
	if build == nil {
		return nil, err
	}
	cancel := func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer done()
		_ = i.cancelUpload(ctx, build.Name) // if this fails, the build itself fails later
	}
	if err != nil {
		cancel()
		return nil, err
	}
	running, err := waitForStart(ctx, i.deps, build.Name, podStartTimeout)
	if err == nil && running.Status.Phase != buildv1.BuildPhaseRunning {
		err = apierrors.NewBadRequest(fmt.Sprintf("build %q is %s and cannot receive a source: %s", build.Name, running.Status.Phase, running.Status.Message))
	}
	if err == nil {
		err = i.send(ctx, running, &uploadReader{source, cancel})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return i.build(ctx, build.Name)
}

// binaryRequest converts the options to a build request.
func binaryRequest(name string, options *buildv1.BinaryBuildRequestOptions) *buildv1.BuildRequest {
	req := &buildv1.BuildRequest{Binary: &buildv1.BinaryBuildSource{AsFile: options.AsFile}, TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Build binary source"}}}
	req.Name = name
	if options.Commit != "" || options.Message != "" {
		req.Revision = &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{
			Commit: options.Commit, Message: options.Message,
			Author:    buildv1.SourceControlUser{Name: options.AuthorName, Email: options.AuthorEmail},
			Committer: buildv1.SourceControlUser{Name: options.CommitterName, Email: options.CommitterEmail},
		}}
	}
	return req
}

// uploadReader calls onError if a read fails, because the pod would interpret a failed read as the
// end of the source.
type uploadReader struct {
	io.Reader
	onError func()
}

// Read implements io.Reader.
func (w *uploadReader) Read(into []byte) (int, error) {
	n, err := w.Reader.Read(into)
	if err != nil && err != io.EOF {
		w.onError()
	}
	return n, err
}

// send copies a source to the standard input of the build's pod.
func (i *instantiateBinary) send(ctx context.Context, build *buildv1.Build, source io.Reader) error {
	core := i.deps.Kube.CoreV1()
	pod, err := core.Pods(build.Namespace).Get(ctx, instantiate.PodName(build.Name), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the pod of build %q: %w", build.Name, err)
	}
	if !metav1.IsControlledBy(pod, build) {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %q does not belong to build %q", pod.Name, build.Name))
	}
	attach := core.RESTClient().Post().Namespace(build.Namespace).Resource("pods").Name(pod.Name).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Stdin: true, Container: pod.Spec.Containers[0].Name}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(i.deps.Loopback, http.MethodPost, attach.URL())
	if err != nil {
		return fmt.Errorf("attach to the pod of build %q: %w", build.Name, err)
	}
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: source}); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("send source to the pod of build %q: %w", build.Name, err))
	}
	return nil
}

// cancelUpload cancels a build whose upload failed.
func (s buildStore) cancelUpload(ctx context.Context, name string) error {
	_, _, err := s.store("builds").Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil,
		func(_ context.Context, _, object runtime.Object) (runtime.Object, error) {
			build := object.DeepCopyObject().(*buildv1.Build)
			if status := &build.Status; !instantiate.Ended(build) && !status.Cancelled {
				status.Cancelled = true
				status.Reason, status.Message = buildv1.StatusReasonFetchSourceFailed, "The upload of the source failed."
			}
			return build, nil
		}), nil, nil, false, &metav1.UpdateOptions{})
	return err
}
