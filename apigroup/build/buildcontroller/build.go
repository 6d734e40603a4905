package buildcontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/controller"
)

// buildController creates a build's pod when the build no longer has to wait, and updates the
// build's status.
type buildController struct {
	podFactory
	core     coreclient.CoreV1Interface
	creator  coreclient.PodsGetter // creates pods with the permissions of its service account
	client   buildclient.BuildsGetter
	indexer  cache.Indexer // contains builds, and has the indexers of buildIndexers
	builds   buildlisters.BuildLister
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	// templates is used only if JenkinsProvisioned is set.
	templates templateclient.TemplateInstancesGetter
	events    record.EventRecorder
	trigger   *controller.Trigger // enqueues the next builds
}

func (l *buildController) controller(builds, pods, streams, services cache.SharedIndexInformer) controller.Controller {
	buildKey := func(object any) []controller.Key {
		pod := object.(*corev1.Pod)
		return []controller.Key{{Namespace: pod.Namespace, Name: pod.Annotations[buildv1.BuildAnnotation]}}
	}
	return controller.Controller{
		Name: "builds",
		Watches: []controller.Watch{
			{Informer: builds, Keys: l.keysWithNext}, {Informer: pods, Keys: buildKey},
			{Informer: streams, Keys: l.keysWaitingForStream}, {Informer: services, Keys: l.keysOfJenkins},
		},
		Reconcile: l.reconcile, Trigger: l.trigger, MinBackoff: minBackoff, MaxBackoff: maxBackoff,
	}
}

// keysWaitingForStream returns the keys of the builds that are waiting for their output image
// stream or for an image. object is the image stream that changed.
func (l *buildController) keysWaitingForStream(object any) (keys []controller.Key) {
	stream := object.(*imagev1.ImageStream)
	namespace := stream.Namespace
	if namespace == runnerNamespace && stream.Name == runnerStream {
		namespace = metav1.NamespaceAll
	}
	// List reads from the cache, so it returns no errors.
	builds, _ := l.builds.Builds(namespace).List(labels.Everything())
	for _, build := range builds {
		reason := build.Status.Reason
		if build.Status.Phase == buildv1.BuildPhaseNew && (reason == buildv1.StatusReasonInvalidOutputReference || reason == buildv1.StatusReasonInvalidImageReference) {
			keys = append(keys, cache.MetaObjectToName(build))
		}
	}
	return keys
}

func (l *buildController) reconcile(ctx context.Context, key controller.Key) error {
	if config, ok := strings.CutPrefix(key.Name, nextPrefix); ok {
		for _, next := range l.next(key.Namespace, config) {
			l.trigger.Add(next)
		}
		return nil
	}
	build, live, err := controller.Live(l.builds.Builds(key.Namespace).Get(key.Name))
	if !live {
		return err
	}
	switch {
	case instantiate.Ended(build):
		return l.removeLatePod(ctx, build)
	case l.servedByJenkins(build) && (!build.Status.Cancelled || l.jenkinsCancels(build)):
		return nil // Jenkins' sync plugin sets the phase, and stops a canceled run that it has started
	case build.Status.Cancelled:
		return l.cancel(ctx, build)
	case build.Status.Phase == buildv1.BuildPhaseNew:
		return l.createPod(ctx, build)
	}
	return l.syncPod(ctx, build)
}

// createPod creates a build's pod, unless the build has to wait.
func (l *buildController) createPod(ctx context.Context, build *buildv1.Build) error {
	if err := l.awaitJenkins(ctx, build); err != nil {
		return err
	}
	wait, err := l.mustWait(ctx, build)
	if errors.Is(err, errBehind) {
		return nil
	}
	if err != nil {
		return err
	}
	if wait {
		return controller.RequeueAfter(requeueInterval)
	}
	pod, output, err := l.pod(ctx, build)
	if err != nil {
		l.reportRunner(build, err)
		return l.setPending(ctx, build, err)
	}
	existing, err := l.creator.Pods(build.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		existing, err = l.core.Pods(build.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(existing, build) {
			return l.end(ctx, build, outcome{buildv1.BuildPhaseError, buildv1.StatusReasonBuildPodExists, "The pod for this build already exists and is older than the build."})
		}
	}
	if apierrors.IsForbidden(err) && l.siblingJustEnded(build) {
		return controller.RequeueAfter(quotaRequeueInterval)
	}
	if err != nil {
		l.events.Eventf(build, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return l.setPending(ctx, build, &reasonError{
			reason: buildv1.StatusReasonCannotCreateBuildPod, message: "Failed creating build pod.", cause: fmt.Errorf("create build pod %q: %w", pod.Name, err),
			// A pod that the API server rejects as invalid stays invalid, so a retry cannot
			// succeed.
			final: apierrors.IsInvalid(err),
		})
	}
	next := build.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, buildv1.BuildPodNameAnnotation, existing.Name)
	next.Status.Phase, next.Status.Reason, next.Status.Message = buildv1.BuildPhasePending, "", ""
	next.Status.OutputDockerImageReference = output
	return l.update(ctx, next)
}

// reasonError explains why a build cannot start. It contains the reason and the message for the
// build's status. If final is set, the build can never start.
type reasonError struct {
	reason  buildv1.StatusReason
	message string
	cause   error
	final   bool
}

func (p *reasonError) Error() string { return p.cause.Error() }

func (p *reasonError) Unwrap() error { return p.cause }

// setPending records why a build cannot start, and returns the error so that the build is retried.
// If the build can never start, setPending marks the build as failed.
func (l *buildController) setPending(ctx context.Context, build *buildv1.Build, err error) error {
	var reason *reasonError
	if !errors.As(err, &reason) {
		reason = &reasonError{reason: buildv1.StatusReasonCannotCreateBuildPodSpec, message: "Failed to create pod spec.", cause: err}
	}
	if reason.final {
		return l.end(ctx, build, outcome{buildv1.BuildPhaseError, reason.reason, reason.message + " " + reason.cause.Error()})
	}
	message := reason.message
	// Add the error, because it names the quota or policy that rejects the pod.
	if reason.reason == buildv1.StatusReasonCannotCreateBuildPod {
		message += " " + reason.cause.Error()
	}
	if build.Status.Reason != reason.reason || build.Status.Message != message {
		next := build.DeepCopy()
		next.Status.Reason, next.Status.Message = reason.reason, message
		if err := l.update(ctx, next); err != nil {
			return err
		}
	}
	return err
}

// syncPod updates a build from its pod's status.
func (l *buildController) syncPod(ctx context.Context, build *buildv1.Build) error {
	if isPushed(build) {
		return l.end(ctx, build, outcome{phase: buildv1.BuildPhaseComplete})
	}
	pod, err := l.podOf(ctx, build)
	if err != nil {
		return err
	}
	if pod == nil {
		return l.end(ctx, build, podDeleted())
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		if isSucceeded(pod) {
			ended := pod.DeepCopy()
			ended.Status.Phase = corev1.PodSucceeded
			return l.end(ctx, build, result(build, ended))
		}
		if build.Status.Phase == buildv1.BuildPhaseRunning {
			return nil
		}
		next := build.DeepCopy()
		next.Status.Phase, next.Status.StartTimestamp = buildv1.BuildPhaseRunning, now()
		if err := l.update(ctx, next); err != nil {
			return err
		}
		l.events.Eventf(build, corev1.EventTypeNormal, "BuildStarted", "Build %s/%s is now running", build.Namespace, build.Name)
	case corev1.PodSucceeded, corev1.PodFailed:
		return l.end(ctx, build, result(build, pod))
	}
	return nil
}

// podOf returns a build's pod, or nil if the pod does not exist.
func (l *buildController) podOf(ctx context.Context, build *buildv1.Build) (*corev1.Pod, error) {
	name := instantiate.PodName(build.Name)
	pod, err := l.pods.Pods(build.Namespace).Get(name)
	if apierrors.IsNotFound(err) { // the cache can be stale
		pod, err = l.core.Pods(build.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(pod, build):
		return nil, nil
	}
	return pod, nil
}

// cancel deletes a canceled build's pod and sets the build's final status.
func (l *buildController) cancel(ctx context.Context, build *buildv1.Build) error {
	pod, err := l.podOf(ctx, build)
	if err != nil {
		return err
	}
	if pod != nil {
		if err := l.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	return l.end(ctx, build, canceledOutcome(build))
}

// podEndTimeout is the maximum time that the pod of a complete build can take to exit.
const podEndTimeout = time.Minute

// removeLatePod deletes a finished build's pod if the pod is still running, for example because a
// user set the build's phase. It keeps a pod that has exited, so that the pod's log remains
// available.
func (l *buildController) removeLatePod(ctx context.Context, build *buildv1.Build) error {
	pod, err := l.pods.Pods(build.Namespace).Get(instantiate.PodName(build.Name))
	if err != nil || !metav1.IsControlledBy(pod, build) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil // the only possible error is NotFound
	}
	if end := build.Status.CompletionTimestamp; end != nil && build.Status.Phase == buildv1.BuildPhaseComplete {
		if remaining := podEndTimeout - time.Since(end.Time); remaining > 0 {
			return controller.RequeueAfter(remaining)
		}
	}
	return l.deletePod(ctx, pod)
}

// deletePod deletes a build's pod, unless the pod is already terminating.
func (l *buildController) deletePod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := l.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	// A conflict means that a different pod now has this name.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete build pod %q: %w", pod.Name, err)
	}
	return nil
}

// update stores a changed build. It returns a conflict error if the stored build has also changed.
func (l *buildController) update(ctx context.Context, next *buildv1.Build) error {
	if _, err := l.client.Builds(next.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update build %q: %w", next.Name, err)
	}
	return nil
}

func now() *metav1.Time {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &now
}
