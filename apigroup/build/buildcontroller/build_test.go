package buildcontroller

import (
	"context"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	buildfake "github.com/openshift/client-go/build/clientset/versioned/fake"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/controller"
)

// newLoop returns a controller whose caches contain the given builds and pods.
func newLoop(t *testing.T, builds []*buildv1.Build, pods ...*corev1.Pod) *buildController {
	t.Helper()
	newIndexer := func() cache.Indexer {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	indexer, podIndexer := newIndexer(), newIndexer()
	if err := indexer.AddIndexers(buildIndexers()); err != nil {
		t.Fatal(err)
	}
	var objects, running []runtime.Object
	for _, build := range builds {
		objects = append(objects, build)
		if err := indexer.Add(build); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range pods {
		running = append(running, pod)
		if err := podIndexer.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	kube := fake.NewClientset(running...).CoreV1()
	client := buildfake.NewClientset(objects...)
	return &buildController{
		podFactory: *newPodFactory(t), core: kube, creator: kube, client: client.BuildV1(),
		indexer: indexer, builds: buildlisters.NewBuildLister(indexer), pods: corelisters.NewPodLister(podIndexer), services: corelisters.NewServiceLister(newIndexer()), events: record.NewFakeRecorder(10),
	}
}

func podOf(build *buildv1.Build, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: build.Namespace, Name: instantiate.PodName(build.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(build, buildv1.GroupVersion.WithKind("Build"))},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestPodOfEndedBuildIsDeleted(t *testing.T) {
	for phase, stays := range map[corev1.PodPhase]bool{"Pending": false, "Running": false, "Succeeded": true, "Failed": true} {
		ended := build()
		ended.Status.Phase = buildv1.BuildPhaseCancelled
		loop := newLoop(t, []*buildv1.Build{ended}, podOf(ended, phase))
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Error(err)
		}
		if _, err := loop.core.Pods("shop").Get(t.Context(), "app-1-build", metav1.GetOptions{}); apierrors.IsNotFound(err) == stays {
			t.Errorf("pod in phase %s still exists: %v; %v", phase, !stays, err)
		}
	}
}

func TestBuildIsCompleteWhenImageIsPushed(t *testing.T) {
	report := buildv1.BuildStatus{Phase: buildv1.BuildPhaseRunning}
	report.Output.To = &buildv1.BuildStatusOutputTo{ImageDigest: "sha256:0"}
	for name, tt := range map[string]struct {
		change func(*buildv1.Build)
		want   buildv1.BuildPhase
	}{
		"pushed":               {func(*buildv1.Build) {}, buildv1.BuildPhaseComplete},
		"pushed while pending": {func(b *buildv1.Build) { b.Status.Phase = buildv1.BuildPhasePending }, buildv1.BuildPhaseComplete},
		"not pushed":           {func(b *buildv1.Build) { b.Status.Output.To = nil }, buildv1.BuildPhaseRunning},
		"failed":               {func(b *buildv1.Build) { b.Status.Reason = buildv1.StatusReasonPostCommitHookFailed }, buildv1.BuildPhaseRunning},
		"canceled meanwhile":   {func(b *buildv1.Build) { b.Status.Cancelled = true }, buildv1.BuildPhaseCancelled},
		"of a custom builder": {func(b *buildv1.Build) {
			b.Spec.Strategy = buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{}}
		}, buildv1.BuildPhaseRunning},
	} {
		reported := build()
		report.DeepCopyInto(&reported.Status)
		tt.change(reported)
		loop := newLoop(t, []*buildv1.Build{reported}, podOf(reported, corev1.PodRunning))
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != tt.want {
			t.Errorf("%s: phase is %q, want %q: %v", name, got.Status.Phase, tt.want, err)
		}
	}
}

func TestBuildIsCompleteWhenContainerSucceeds(t *testing.T) {
	for code, want := range map[int32]buildv1.BuildPhase{0: buildv1.BuildPhaseComplete, 1: buildv1.BuildPhaseRunning} {
		running := build()
		running.Status.Phase = buildv1.BuildPhaseRunning
		pod := podOf(running, corev1.PodRunning)
		pod.Spec.Containers = []corev1.Container{{Name: "docker-build"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}}
		loop := newLoop(t, []*buildv1.Build{running}, pod)
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Error(err)
		}
		if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != want {
			t.Errorf("exit code %d: phase is %q, want %q: %v", code, got.Status.Phase, want, err)
		}
	}
}

func TestPodOfCompleteBuildIsDeletedAfterTimeout(t *testing.T) {
	for ago, stays := range map[time.Duration]bool{0: true, 2 * podEndTimeout: false} {
		complete := build()
		complete.Status.Phase, complete.Status.CompletionTimestamp = buildv1.BuildPhaseComplete, &metav1.Time{Time: time.Now().Add(-ago)}
		loop := newLoop(t, []*buildv1.Build{complete}, podOf(complete, corev1.PodRunning))
		// While the pod still exists, reconcile returns an error, which requeues the build.
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); (err != nil) != stays {
			t.Errorf("%s after the end: %v", ago, err)
		}
		if _, err := loop.core.Pods("shop").Get(t.Context(), "app-1-build", metav1.GetOptions{}); apierrors.IsNotFound(err) == stays {
			t.Errorf("%s after the end: pod still exists: %v; %v", ago, !stays, err)
		}
	}
}

// invalid is a client that rejects all new pods as invalid.
type invalid struct{ coreclient.PodInterface }

func (i invalid) Pods(string) coreclient.PodInterface { return i }

func (invalid) Create(_ context.Context, pod *corev1.Pod, _ metav1.CreateOptions) (*corev1.Pod, error) {
	return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), pod.Name, nil)
}

func TestBuildWithInvalidPodEnds(t *testing.T) {
	never := build()
	never.Status.Phase = buildv1.BuildPhaseNew
	loop := newLoop(t, []*buildv1.Build{never})
	loop.creator = invalid{}
	if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != buildv1.BuildPhaseError || got.Status.Reason != "CannotCreateBuildPod" {
		t.Errorf("build status is %+v, %v", got.Status, err)
	}
}

func TestBuildWithInvalidServiceAccountEnds(t *testing.T) {
	never := build()
	never.Status.Phase, never.Spec.ServiceAccount = buildv1.BuildPhaseNew, "../default"
	loop := newLoop(t, []*buildv1.Build{never})
	if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{}); err != nil || got.Status.Phase != buildv1.BuildPhaseError || got.Status.Reason != "CannotRetrieveServiceAccount" {
		t.Errorf("build status is %+v, %v", got.Status, err)
	}
}

func TestCanceledBuildEnds(t *testing.T) {
	for reason, want := range map[buildv1.StatusReason]string{"": "Cancelled CancelledBuild", "InvalidOutputReference": "Cancelled CancelledBuild", "FetchSourceFailed": "Failed FetchSourceFailed"} {
		ending := build()
		ending.Status.Phase, ending.Status.Cancelled, ending.Status.Reason = buildv1.BuildPhaseRunning, true, reason
		loop := newLoop(t, []*buildv1.Build{ending}, podOf(ending, corev1.PodRunning))
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err != nil {
			t.Fatal(err)
		}
		got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{})
		if err != nil || string(got.Status.Phase)+" "+string(got.Status.Reason) != want {
			t.Errorf("with reason %q build status is %+v, %v; want %s", reason, got.Status, err, want)
		}
		if _, err := loop.core.Pods("shop").Get(t.Context(), "app-1-build", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("reason %q: pod still exists: %v", reason, err)
		}
	}
}
