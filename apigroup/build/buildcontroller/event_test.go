package buildcontroller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

// full is a client that rejects all new pods because a quota is exceeded.
type full struct {
	coreclient.PodsGetter
	coreclient.PodInterface
}

func (f full) Pods(string) coreclient.PodInterface { return f }

func (full) Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error) {
	return nil, apierrors.NewForbidden(corev1.Resource("pods"), "app-1-build", errors.New("exceeded quota: small"))
}

// recordedEvents returns the events that a controller has recorded.
func recordedEvents(loop *buildController) (events []string) {
	recorded := loop.events.(*record.FakeRecorder).Events
	for len(recorded) > 0 {
		events = append(events, <-recorded)
	}
	return events
}

func TestBuildEvents(t *testing.T) {
	in := func(phase buildv1.BuildPhase, change func(*buildv1.Build)) *buildv1.Build {
		b := build()
		b.Status.Phase = phase
		if change != nil {
			change(b)
		}
		return b
	}
	pod := func(phase corev1.PodPhase, code int32) *corev1.Pod {
		p := podOf(build(), phase)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
		return p
	}
	const running, done, failed = "Normal BuildStarted Build shop/app-1 is now running", "Normal BuildCompleted Build shop/app-1 completed successfully",
		"Normal BuildFailed Build shop/app-1 failed"
	for name, tt := range map[string]struct {
		build *buildv1.Build
		pod   *corev1.Pod
		want  []string
	}{
		"pod missing":          {in(buildv1.BuildPhaseNew, nil), nil, nil},
		"pod pending":          {in(buildv1.BuildPhasePending, nil), podOf(build(), corev1.PodPending), nil},
		"pod started":          {in(buildv1.BuildPhasePending, nil), podOf(build(), corev1.PodRunning), []string{running}},
		"pod still running":    {in(buildv1.BuildPhaseRunning, nil), podOf(build(), corev1.PodRunning), nil},
		"pod succeeded":        {in(buildv1.BuildPhaseRunning, nil), pod(corev1.PodSucceeded, 0), []string{done}},
		"pod failed":           {in(buildv1.BuildPhaseRunning, nil), pod(corev1.PodFailed, 1), []string{failed}},
		"pod deleted":          {in(buildv1.BuildPhaseRunning, nil), nil, []string{failed}},
		"build canceled":       {in(buildv1.BuildPhaseRunning, func(b *buildv1.Build) { b.Status.Cancelled = true }), podOf(build(), corev1.PodRunning), []string{"Normal BuildCancelled Build shop/app-1 has been cancelled"}},
		"build ended earlier":  {in(buildv1.BuildPhaseComplete, nil), pod(corev1.PodSucceeded, 0), nil},
		"pod of another owner": {in(buildv1.BuildPhaseNew, nil), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-1-build"}}, []string{failed}},
		"image reported":       {in(buildv1.BuildPhaseRunning, func(b *buildv1.Build) { b.Status.Output.To = &buildv1.BuildStatusOutputTo{ImageDigest: "sha256:1"} }), podOf(build(), corev1.PodRunning), []string{done}},
	} {
		var pods []*corev1.Pod
		if tt.pod != nil {
			pods = append(pods, tt.pod)
		}
		loop := newLoop(t, []*buildv1.Build{tt.build}, pods...)
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := recordedEvents(loop); !slices.Equal(got, tt.want) {
			t.Errorf("%s: events are %q, want %q", name, got, tt.want)
		}
	}
}

func TestQuotaIsRetriedQuietlyWhilePreviousPodEnds(t *testing.T) {
	before := build()
	before.Name, before.UID, before.Status.Phase = "app-0", "other", buildv1.BuildPhaseComplete
	for name, tt := range map[string]struct {
		ago   time.Duration
		alarm bool
	}{"just ended": {0, false}, "ended long ago": {time.Hour, true}} {
		next := build()
		next.Status.Phase = buildv1.BuildPhaseNew
		before.Status.CompletionTimestamp = &metav1.Time{Time: time.Now().Add(-tt.ago)}
		for _, b := range []*buildv1.Build{before, next} {
			b.Annotations = map[string]string{buildv1.BuildConfigAnnotation: "app"}
		}
		loop := newLoop(t, []*buildv1.Build{before.DeepCopy(), next})
		loop.creator = full{}
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err == nil {
			t.Errorf("%s: build is not requeued", name)
		}
		build, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		events := strings.Join(recordedEvents(loop), "\n")
		if got := build.Status.Reason == buildv1.StatusReasonCannotCreateBuildPod && strings.Contains(events, "Warning FailedCreate"); got != tt.alarm {
			t.Errorf("%s: reason is %q, events are %q", name, build.Status.Reason, events)
		}
		if !tt.alarm && (build.Status.Reason != "" || events != "") {
			t.Errorf("%s: reason is %q, events are %q", name, build.Status.Reason, events)
		}
	}
}
