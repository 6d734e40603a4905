package deploymentconfig

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	appsfake "github.com/openshift/client-go/apps/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubectl/pkg/scheme"
)

func TestStatusReportsProgressOfRollout(t *testing.T) {
	image := appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange}
	progressing := func(reason, message string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable}, {Type: appsv1.DeploymentProgressing, Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		spec     appsv1.DeploymentConfigSpec
		status   appsv1.DeploymentConfigStatus
		revision int64
		want     string
		done     bool
		problem  string
	}{
		"no image yet":     {spec: appsv1.DeploymentConfigSpec{Triggers: []appsv1.DeploymentTriggerPolicy{image}}, want: "waiting on image update"},
		"no trigger":       {want: "use 'oc rollout latest web'", done: true},
		"another revision": {status: appsv1.DeploymentConfigStatus{LatestVersion: 2}, revision: 1, problem: "desired revision (1) is different from the running revision (2)"},
		"not observed":     {status: appsv1.DeploymentConfigStatus{LatestVersion: 1}, want: "to be observed"},
		"complete":         {status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, Conditions: progressing("NewReplicationControllerAvailable", `replication controller "web-1" is available`)}, want: "\"web-1\" is available\n", done: true},
		"not started":      {status: appsv1.DeploymentConfigStatus{LatestVersion: 2, ObservedGeneration: 3, Conditions: progressing("NewReplicationControllerAvailable", `"web-1" is available`)}, want: "to be completed"},
		"failed":           {status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, Conditions: progressing("ProgressDeadlineExceeded", `"web-1" is slow`)}, done: true, problem: `"web-1" is slow`},
		"cancelled":        {status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, Conditions: progressing("RolloutCancelled", `"web-1" was cancelled`)}, done: true, problem: `"web-1" was cancelled`},
		"new pods missing": {spec: appsv1.DeploymentConfigSpec{Replicas: 3}, status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, UpdatedReplicas: 1}, want: "1 out of 3 new replicas"},
		"pods over a quota": {spec: appsv1.DeploymentConfigSpec{Replicas: 3}, status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: small"}}}, want: "exceeded quota: small"},
		"old pods remaining": {spec: appsv1.DeploymentConfigSpec{Replicas: 1}, status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, UpdatedReplicas: 1, Replicas: 3}, want: "2 old replicas"},
		"pods not available": {spec: appsv1.DeploymentConfigSpec{Replicas: 1}, status: appsv1.DeploymentConfigStatus{LatestVersion: 1, ObservedGeneration: 3, UpdatedReplicas: 1, Replicas: 1}, want: "0 of 1 updated replicas"},
	} {
		dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3}, Spec: c.spec, Status: c.status}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dc)
		if err != nil {
			t.Fatal(err)
		}
		text, done, err := statusViewer{}.Status(&unstructured.Unstructured{Object: content}, c.revision)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if !strings.Contains(text, c.want) || (text == "") != (c.want == "") || done != c.done || problem != c.problem {
			t.Errorf("%s: %q, done %t, %v", name, text, done, err)
		}
	}
}

func TestPauseAndResumeRejectRepeats(t *testing.T) {
	if err := appsv1.Install(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	pause, resume := pausing(nil, true), pausing(nil, false)
	if _, err := resume(dc); err == nil {
		t.Error("resumed a deployment config that is not paused")
	}
	if text, err := pause(dc); err != nil || !strings.Contains(string(text), `"paused":true`) {
		t.Errorf("paused: %s, %v", text, err)
	}
	if _, err := pause(dc); err == nil {
		t.Error("paused twice")
	}
	if text, err := resume(dc); err != nil || strings.Contains(string(text), "paused") || !strings.Contains(string(text), `"kind":"DeploymentConfig"`) {
		t.Errorf("resumed: %s, %v", text, err)
	}
}

func TestRestartAnnotatesPodTemplate(t *testing.T) {
	if err := appsv1.Install(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	restart := restarting(nil)
	dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if _, err := restart(dc); err == nil || !strings.Contains(err.Error(), "rollout latest dc/web") {
		t.Errorf("without a trigger: %v", err)
	}
	dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	if text, err := restart(dc); err != nil || !strings.Contains(string(text), `"kubectl.kubernetes.io/restartedAt":"2`) {
		t.Errorf("restarted: %s, %v", text, err)
	}
	dc.Spec.Paused = true
	if _, err := restart(dc); err == nil {
		t.Error("restarted a paused deployment config")
	}
}

func TestRolloutWaitsForEarlierRollouts(t *testing.T) {
	deployment := func(version, phase string) *corev1.ReplicationController {
		return &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + version, Labels: map[string]string{appsv1.DeploymentConfigAnnotation: "web"},
			Annotations: map[string]string{appsv1.DeploymentStatusAnnotation: phase, appsv1.DeploymentVersionAnnotation: version},
		}}
	}
	for name, c := range map[string]struct {
		latest  int64
		phases  []string // phases of the deployments 1, 2, and so on
		again   bool
		problem string
	}{
		"first": {}, "complete": {latest: 1, phases: []string{"Complete"}}, "again": {latest: 1, phases: []string{"Running"}, again: true},
		"in progress":           {latest: 1, phases: []string{"Pending"}, problem: "#1 is already in progress (Pending)"},
		"not created yet":       {latest: 3, phases: []string{"Complete", "Running"}, problem: "#3 is already in progress (it waits for the end of #2)"},
		"latest one is deleted": {latest: 2, phases: []string{"Complete"}},
	} {
		dc := &appsv1.DeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: appsv1.DeploymentConfigStatus{LatestVersion: c.latest}}
		core := kubefake.NewSimpleClientset()
		for i, phase := range c.phases {
			if err := core.Tracker().Add(deployment(strconv.Itoa(i+1), phase)); err != nil {
				t.Fatal(err)
			}
		}
		client, problem := &Client{apps: appsfake.NewSimpleClientset(dc).AppsV1(), core: core.CoreV1()}, ""
		if _, err := client.deployable(t.Context(), "shop", "web", c.again); err != nil {
			problem = err.Error()
		}
		if problem != c.problem {
			t.Errorf("%s: %q, want %q", name, problem, c.problem)
		}
	}
}

func TestImageTriggersAreEnabled(t *testing.T) {
	image := func(stream string) appsv1.DeploymentTriggerPolicy {
		return appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{From: corev1.ObjectReference{Name: stream}}}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	apps := appsfake.NewSimpleClientset(
		&appsv1.DeploymentConfig{ObjectMeta: meta("web"), Spec: appsv1.DeploymentConfigSpec{Triggers: appsv1.DeploymentTriggerPolicies{image("web:latest"), image("side:1")}}},
		&appsv1.DeploymentConfig{ObjectMeta: meta("bare")})
	client := &Client{apps: apps.AppsV1()}
	images, err := client.EnableTriggers(t.Context(), "shop", "web")
	if err != nil || !slices.Equal(images, []string{"web:latest", "side:1"}) {
		t.Fatalf("enabled %q: %v", images, err)
	}
	config, err := apps.AppsV1().DeploymentConfigs("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || !config.Spec.Triggers[0].ImageChangeParams.Automatic || !config.Spec.Triggers[1].ImageChangeParams.Automatic {
		t.Errorf("stored %+v: %v", config, err)
	}
	if _, err := client.EnableTriggers(t.Context(), "shop", "bare"); err == nil || !strings.Contains(err.Error(), "no image triggers") {
		t.Errorf("without a trigger: %v", err)
	}
}
