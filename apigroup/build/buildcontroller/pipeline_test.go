package buildcontroller

import (
	"slices"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	templatefake "github.com/openshift/client-go/template/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/controller"
)

func TestPipelineWithoutRunnerWaitsAndReportsCommand(t *testing.T) {
	pipeline := asPipeline(numbered(1, "New", "Serial"))
	pipeline.Spec.Output = buildv1.BuildOutput{}
	loop := newLoop(t, []*buildv1.Build{pipeline})
	events := record.NewFakeRecorder(10)
	loop.events = events
	for range 2 {
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err == nil {
			t.Error("the pipeline is not retried")
		}
		got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{})
		if err != nil || got.Status.Phase != buildv1.BuildPhaseNew || got.Status.Reason != buildv1.StatusReasonInvalidImageReference || !strings.Contains(got.Status.Message, "slipway samples build pipeline-runner") {
			t.Fatalf("status is %+v, %v", got.Status, err)
		}
		if err := loop.indexer.Update(got); err != nil {
			t.Fatal(err)
		}
	}
	if event := <-events.Events; len(events.Events) > 0 || !strings.Contains(event, "PipelineRunnerMissing") {
		t.Errorf("events are %q and %d more", event, len(events.Events))
	}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: runnerNamespace, Name: runnerStream}}
	if keys := loop.keysWaitingForStream(stream); len(keys) != 1 {
		t.Errorf("the image of the runner enqueues %v", keys)
	}
}

func TestPipelineWaitsOnlyForJenkinsOfItsProject(t *testing.T) {
	for namespace, reason := range map[string]buildv1.StatusReason{"shop": "", "other": buildv1.StatusReasonInvalidImageReference} {
		loop := newLoop(t, []*buildv1.Build{asPipeline(numbered(1, "New", "Serial"))})
		loop.JenkinsProvisioned = true
		loop.templates = templatefake.NewClientset(&templatev1.TemplateInstance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "jenkins"}}).TemplateV1()
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err == nil {
			t.Error("the pipeline is not retried")
		}
		got, err := loop.client.Builds("shop").Get(t.Context(), "app-1", metav1.GetOptions{})
		if err != nil || got.Status.Phase != buildv1.BuildPhaseNew || got.Status.Reason != reason {
			t.Errorf("with a Jenkins in project %s, the status is %+v, %v", namespace, got.Status, err)
		}
	}
}

func TestFailedTemplateInstanceOfJenkinsIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		condition templatev1.TemplateInstanceConditionType
		status    corev1.ConditionStatus
		reported  bool
	}{
		"failed":     {templatev1.TemplateInstanceInstantiateFailure, corev1.ConditionTrue, true},
		"not failed": {templatev1.TemplateInstanceInstantiateFailure, corev1.ConditionFalse, false},
		"not ready":  {templatev1.TemplateInstanceReady, corev1.ConditionFalse, false},
		"ready":      {templatev1.TemplateInstanceReady, corev1.ConditionTrue, false},
	} {
		loop := newLoop(t, []*buildv1.Build{asPipeline(numbered(1, "New", "Serial"))})
		loop.JenkinsProvisioned = true
		loop.templates = templatefake.NewClientset(&templatev1.TemplateInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "jenkins"},
			Status:     templatev1.TemplateInstanceStatus{Conditions: []templatev1.TemplateInstanceCondition{{Type: tt.condition, Status: tt.status, Message: "no route"}}},
		}).TemplateV1()
		if err := loop.reconcile(t.Context(), controller.Key{Namespace: "shop", Name: "app-1"}); err == nil {
			t.Errorf("%s: the pipeline is not retried", name)
		}
		events := recordedEvents(loop)
		reported := len(events) == 1 && strings.Contains(events[0], `"jenkins" has failed: no route`)
		if reported != tt.reported || !reported && len(events) > 0 {
			t.Errorf("%s: events are %q", name, events)
		}
	}
}

func TestPodOfPipelineHasNoPrivileges(t *testing.T) {
	factory := newPodFactory(t)
	streams := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: runnerNamespace, Name: runnerStream}}
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: runnerTag, Items: []imagev1.TagEvent{{DockerImageReference: "registry:5000/openshift/pipeline-runner@sha256:1"}}}}
	if err := streams.Add(stream); err != nil {
		t.Fatal(err)
	}
	factory.streams = imagelisters.NewImageStreamLister(streams)
	pipeline := asPipeline(numbered(1, "New", "Serial"))
	pipeline.Spec.Output = buildv1.BuildOutput{}
	pipeline.Spec.Source.SourceSecret = &corev1.LocalObjectReference{Name: "git"}
	pipeline.Spec.Strategy.JenkinsPipelineStrategy.Env = []corev1.EnvVar{{Name: "COLOR", Value: "red"}}
	pod, _, err := factory.pod(t.Context(), pipeline)
	if err != nil {
		t.Fatal(err)
	}
	runner := pod.Spec.Containers[0]
	if runner.Image != "registry:5000/openshift/pipeline-runner@sha256:1" || !slices.Contains(runner.Env, corev1.EnvVar{Name: "COLOR", Value: "red"}) {
		t.Errorf("the runner is %+v", runner)
	}
	for _, container := range append(pod.Spec.InitContainers, runner) {
		if security := container.SecurityContext; *security.AllowPrivilegeEscalation || len(security.Capabilities.Add) > 0 || security.SeccompProfile != nil {
			t.Errorf("container %s has %+v", container.Name, security)
		}
	}
	if mounts := runner.VolumeMounts; slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == sourceDir }) {
		t.Errorf("the runner has the secret of the source: %+v", mounts)
	}
}

func TestPipelineResultIsThatOfJenkinsfile(t *testing.T) {
	for message, want := range map[string]string{
		"SUCCESS\n\n": "Complete ", "UNSTABLE\n": "Complete ", "ABORTED\nERROR: Rejected": "Cancelled CancelledBuild",
		"FAILURE\nERROR: script returned exit code 1\n": "Failed GenericBuildFailed", "": "Failed GenericBuildFailed",
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}}}}}
		got := result(asPipeline(build()), pod)
		if string(got.phase)+" "+string(got.reason) != want {
			t.Errorf("message %q: %+v, want %s", message, got, want)
		}
	}
}
