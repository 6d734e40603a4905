package buildcontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
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

// buildLoop gives each build its pod when its turn has come, and writes down what becomes of it.
type buildLoop struct {
	maker
	core    coreclient.CoreV1Interface
	creator coreclient.PodsGetter // makes the pods, so that its rights count, and not ours
	client  buildclient.BuildsGetter
	known   cache.Indexer // of builds, with the indexers of buildIndexers
	builds  buildlisters.BuildLister
	pods    corelisters.PodLister
	events  record.EventRecorder
}

func (l *buildLoop) loop(builds, pods, streams cache.SharedIndexInformer) controller.Loop {
	built := func(object any) []controller.Key {
		pod := object.(*corev1.Pod)
		return []controller.Key{{Namespace: pod.Namespace, Name: pod.Annotations[buildv1.BuildAnnotation]}}
	}
	return controller.Loop{
		Name: "builds",
		Watches: []controller.Watch{
			{Informer: builds, Keys: l.withNext}, {Informer: pods, Keys: built},
			{Informer: streams, Keys: l.forStream},
		},
		Reconcile: l.reconcile, Retry: firstRetry, RetryMax: lastRetry,
	}
}

// forStream are the builds that wait for an image stream to push to, or for an image to begin with.
func (l *buildLoop) forStream(object any) (keys []controller.Key) {
	builds, _ := l.builds.Builds(object.(*imagev1.ImageStream).Namespace).List(labels.Everything()) // listing from the cache does not fail
	for _, build := range builds {
		reason := build.Status.Reason
		if build.Status.Phase == buildv1.BuildPhaseNew && (reason == buildv1.StatusReasonInvalidOutputReference || reason == buildv1.StatusReasonInvalidImageReference) {
			keys = append(keys, cache.MetaObjectToName(build))
		}
	}
	return keys
}

func (l *buildLoop) reconcile(ctx context.Context, key controller.Key) error {
	build, err := l.builds.Builds(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case build.DeletionTimestamp != nil:
		return nil
	case instantiate.Ended(build):
		return l.stop(ctx, build)
	case build.Status.Cancelled:
		return l.cancel(ctx, build)
	case build.Spec.Strategy.JenkinsPipelineStrategy != nil:
		return nil
	case build.Status.Phase == buildv1.BuildPhaseNew:
		return l.begin(ctx, build)
	}
	return l.follow(ctx, build)
}

// begin makes the pod of a build whose turn it is.
func (l *buildLoop) begin(ctx context.Context, build *buildv1.Build) error {
	wait, err := l.turn(ctx, build)
	if err != nil {
		return err
	}
	if wait {
		return controller.After(another)
	}
	pod, output, err := l.pod(ctx, build)
	if err != nil {
		return l.postpone(ctx, build, err)
	}
	made, err := l.creator.Pods(build.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = l.core.Pods(build.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !metav1.IsControlledBy(made, build) {
			return l.end(ctx, build, outcome{buildv1.BuildPhaseError, buildv1.StatusReasonBuildPodExists, "The pod for this build already exists and is older than the build."})
		}
	}
	if apierrors.IsForbidden(err) && l.makesRoom(build) {
		return controller.After(room)
	}
	if err != nil {
		l.events.Eventf(build, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return l.postpone(ctx, build, &problem{
			reason: buildv1.StatusReasonCannotCreateBuildPod, message: "Failed creating build pod.", cause: fmt.Errorf("create build pod %q: %w", pod.Name, err),
			final: apierrors.IsInvalid(err), // as it will be each time: neither the build nor what is made of it changes
		})
	}
	next := build.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, buildv1.BuildPodNameAnnotation, made.Name)
	next.Status.Phase, next.Status.Reason, next.Status.Message = buildv1.BuildPhasePending, "", ""
	next.Status.OutputDockerImageReference = output
	return l.update(ctx, next)
}

// problem is why a build cannot begin yet, or never if it is final, in the words that its status has for it.
type problem struct {
	reason  buildv1.StatusReason
	message string
	cause   error
	final   bool
}

func (p *problem) Error() string { return p.cause.Error() }

func (p *problem) Unwrap() error { return p.cause }

// postpone writes down why a build cannot begin, and has it tried again unless that is of no use.
func (l *buildLoop) postpone(ctx context.Context, build *buildv1.Build, why error) error {
	var known *problem
	if !errors.As(why, &known) {
		known = &problem{reason: buildv1.StatusReasonCannotCreateBuildPodSpec, message: "Failed to create pod spec.", cause: why}
	}
	if known.final {
		return l.end(ctx, build, outcome{buildv1.BuildPhaseError, known.reason, known.message + " " + known.cause.Error()})
	}
	if build.Status.Reason != known.reason {
		next := build.DeepCopy()
		next.Status.Reason, next.Status.Message = known.reason, known.message
		if err := l.update(ctx, next); err != nil {
			return err
		}
	}
	return why
}

// follow writes down what has become of a build's pod.
func (l *buildLoop) follow(ctx context.Context, build *buildv1.Build) error {
	if pushed(build) {
		return l.end(ctx, build, outcome{phase: buildv1.BuildPhaseComplete})
	}
	pod, err := l.find(ctx, build)
	if err != nil {
		return err
	}
	if pod == nil {
		return l.end(ctx, build, podDeleted())
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		if succeeded(pod) {
			return l.end(ctx, build, outcome{phase: buildv1.BuildPhaseComplete})
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

// find is the pod of a build, nil if it has none any more.
func (l *buildLoop) find(ctx context.Context, build *buildv1.Build) (*corev1.Pod, error) {
	name := instantiate.PodName(build.Name)
	pod, err := l.pods.Pods(build.Namespace).Get(name)
	if apierrors.IsNotFound(err) { // the cache may be behind
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

// cancel removes the pod of a build that is not to go on.
func (l *buildLoop) cancel(ctx context.Context, build *buildv1.Build) error {
	pod, err := l.find(ctx, build)
	if err != nil {
		return err
	}
	if pod != nil {
		if err := l.remove(ctx, pod); err != nil {
			return err
		}
	}
	return l.end(ctx, build, cancelled(build))
}

// farewell is how long the pod of a complete build has for its own end, for which the build has not waited.
const farewell = time.Minute

// stop removes a pod that goes on after its build has ended, as it does where somebody has written the end by hand. One that has ended keeps its log.
func (l *buildLoop) stop(ctx context.Context, build *buildv1.Build) error {
	pod, err := l.pods.Pods(build.Namespace).Get(instantiate.PodName(build.Name))
	if err != nil || !metav1.IsControlledBy(pod, build) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil // the cache has no other error than that there is none
	}
	if end := build.Status.CompletionTimestamp; end != nil && build.Status.Phase == buildv1.BuildPhaseComplete {
		if left := farewell - time.Since(end.Time); left > 0 {
			return controller.After(left)
		}
	}
	return l.remove(ctx, pod)
}

// remove removes the pod of a build.
func (l *buildLoop) remove(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := l.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // another pod has its name by now
		return fmt.Errorf("remove build pod %q: %w", pod.Name, err)
	}
	return nil
}

// update stores a changed build, unless it has changed meanwhile.
func (l *buildLoop) update(ctx context.Context, next *buildv1.Build) error {
	if _, err := l.client.Builds(next.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("update build %q: %w", next.Name, err)
	}
	return nil
}

func now() *metav1.Time {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &now
}
