package attack

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// A PodPreset adds a tenant's content to pods that other users create. This content must not get
// the privileges of those pods: build pods have more privileges on their node, and administrators'
// constraints accept every pod.
func TestPresetCannotUseRightsOfPodAuthor(t *testing.T) {
	s := tenants(t)
	presets := "/apis/settings.k8s.io/v1alpha1/namespaces/" + s.evil + "/podpresets"
	preset := func(name, fields string) string {
		return "{apiVersion: settings.k8s.io/v1alpha1, kind: PodPreset, metadata: {name: " + name + "}, spec: {selector: {}, " + fields + "}}"
	}
	s.mallory.May("POST", presets, preset("host", "volumes: [{name: host, hostPath: {path: /}}], volumeMounts: [{name: host, mountPath: /tmp/build}]"))
	s.mallory.May("POST", presets, preset("library", "env: [{name: LD_PRELOAD, value: /evil.so}]"))

	s.mallory.May("POST", kit.GroupPath("build.openshift.io", s.evil, "builds"), `{apiVersion: build.openshift.io/v1, kind: Build, metadata: {name: app},
		spec: {source: {dockerfile: "FROM scratch"}, strategy: {dockerStrategy: {}}}}`)
	pods := kit.CorePath(s.evil, "pods")
	var text string
	s.WaitFor("the pod of the build", func(context.Context) (err error) {
		text, err = s.mallory.Try("GET", pods+"/app-build", "")
		return err
	})
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == "host" {
			t.Error("the pod of a build has the host's root directory")
		}
	}
	if strings.Contains(text, "LD_PRELOAD") {
		t.Errorf("the pod of a build has a variable of a preset: %v", pod.Spec.Containers[0].Env)
	}

	plain := "{apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {schedulerName: none, containers: [" + container("sleep infinity") + "]}}"
	s.Administrator().MayNot("POST", pods, plain, "hostPath volumes are not allowed to be used")
	s.mallory.MayNot("POST", pods, plain, "hostPath volumes are not allowed to be used")
	s.mallory.May("DELETE", presets+"/host", "")
	s.Administrator().MayNot("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: strong}, spec: {schedulerName: none, containers: ["+
		container("sleep infinity", "securityContext: {privileged: true}")+"]}}", "privileged containers are not allowed")
	s.Administrator().May("POST", pods, plain)
	if text := s.mallory.May("GET", pods+"/plain", ""); !strings.Contains(text, `"openshift.io/scc":"restricted"`) {
		t.Errorf("the administrator's pod with a preset is %s", text)
	}
}
