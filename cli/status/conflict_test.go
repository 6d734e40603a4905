package status

import (
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// builds returns a build config. to and from are its output image and its input image.
func builds(to, from string) (config buildv1.BuildConfig) {
	config.Namespace, config.Name = "shop", to
	config.Spec.Output.To = &corev1.ObjectReference{Kind: "ImageStreamTag", Name: to + ":latest"}
	config.Spec.Strategy.DockerStrategy = &buildv1.DockerBuildStrategy{From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: from + ":latest"}}
	return config
}

func messages(all []advice) (text []string) {
	for _, advice := range all {
		text = append(text, advice.message)
	}
	return text
}

func TestBuildCyclesAreReported(t *testing.T) {
	for name, tt := range map[string]struct {
		configs []buildv1.BuildConfig
		want    string
	}{
		"a chain":             {[]buildv1.BuildConfig{builds("app", "runtime"), builds("runtime", "base"), builds("base", "centos")}, ""},
		"a diamond":           {[]buildv1.BuildConfig{builds("a", "base"), builds("b", "base"), builds("base", "centos")}, ""},
		"a circle":            {[]buildv1.BuildConfig{builds("app", "runtime"), builds("runtime", "base"), builds("base", "app")}, "bc/app -> bc/base -> bc/runtime -> bc/app"},
		"builds its own base": {[]buildv1.BuildConfig{builds("app", "app")}, "bc/app -> bc/app"},
		"path to a cycle":     {[]buildv1.BuildConfig{builds("new", "app"), builds("app", "app")}, "bc/app -> bc/app"},
	} {
		got := strings.Join(messages(newView(&State{BuildConfigs: tt.configs}, Options{Namespace: "shop"}).adviseCycles()), "\n")
		if want := tt.want; want != "" && got != "Cycle detected in build configurations: "+want || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOverlappingControllersAreReported(t *testing.T) {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}
	}
	web := map[string]string{"app": "web"}
	state := &State{
		Pods: []corev1.Pod{{ObjectMeta: meta("web-1-a", map[string]string{"app": "web", "deployment": "web-1"})}, {ObjectMeta: meta("other", map[string]string{"app": "other"})}},
		Controllers: []corev1.ReplicationController{
			{ObjectMeta: meta("web-1", nil), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web", "deployment": "web-1"}}},
			{ObjectMeta: meta("web-2", nil), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web", "deployment": "web-2"}}},
		},
		DaemonSets: []kubeappsv1.DaemonSet{
			{ObjectMeta: meta("agent", nil), Spec: kubeappsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: web}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "same"}, Spec: kubeappsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: web}}},
		},
	}
	got := messages(newView(state, Options{Namespace: "shop"}).adviseOverlaps())
	if len(got) != 1 || got[0] != "ds/agent and rc/web-1 both select pod/web-1-a." {
		t.Errorf("%q", got)
	}
}
