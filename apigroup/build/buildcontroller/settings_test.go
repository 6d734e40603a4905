package buildcontroller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	buildv1 "github.com/openshift/api/build/v1"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestSettingsAreReadFromPluginConfigurations(t *testing.T) {
	const (
		defaults  = `{"apiVersion": "v1", "kind": "BuildDefaultsConfig", "gitHTTPProxy": "http://proxy"}`
		overrides = `{"apiVersion": "v1", "kind": "BuildOverridesConfig", "forcePull": true}`
	)
	for _, tt := range []struct {
		name, defaults, overrides string
		want                      Settings
		err                       string
	}{
		{name: "no configuration"},
		{name: "defaults alone", defaults: defaults, want: Settings{Defaults: legacyv1.BuildDefaultsConfig{GitHTTPProxy: "http://proxy"}}},
		{name: "both", defaults: defaults, overrides: overrides, want: Settings{
			Defaults: legacyv1.BuildDefaultsConfig{GitHTTPProxy: "http://proxy"}, Overrides: legacyv1.BuildOverridesConfig{ForcePull: true},
		}},
		{name: "unknown field", overrides: `{"forcePul": true}`, err: `admission plugin BuildOverrides: error unmarshaling JSON: while decoding JSON: json: unknown field "forcePul"`},
		{name: "kind of the other plugin", defaults: overrides, err: `admission plugin BuildDefaults: kind is "BuildOverridesConfig", must be BuildDefaultsConfig`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadSettings([]byte(tt.defaults), []byte(tt.overrides))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got.Defaults.TypeMeta, got.Overrides.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsApplyToBuilds(t *testing.T) {
	podFactory := newPodFactory(t)
	label := func(name, value string) buildv1.ImageLabel { return buildv1.ImageLabel{Name: name, Value: value} }
	settings := &Settings{
		Defaults: legacyv1.BuildDefaultsConfig{
			GitHTTPProxy: "http://git-proxy", Env: []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "http://default"}, {Name: "NO_PROXY", Value: "example.com"}},
			ImageLabels: []buildv1.ImageLabel{label("a", "default"), label("b", "default")}, NodeSelector: map[string]string{"disk": "ssd"},
			Annotations: map[string]string{"from": "default", buildv1.BuildAnnotation: "forged"},
			Resources:   corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}},
		},
		Overrides: legacyv1.BuildOverridesConfig{
			ForcePull: true, ImageLabels: []buildv1.ImageLabel{label("b", "override")}, NodeSelector: map[string]string{"zone": "build"},
			Annotations: map[string]string{"team": "platform"}, Tolerations: []corev1.Toleration{{Key: "builds", Operator: "Exists"}},
		},
	}
	podFactory.Settings.Replace(settings)
	build := build()
	build.Spec.Output.ImageLabels = []buildv1.ImageLabel{label("a", "own")}
	build.Spec.Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("2Gi")}
	pod, _, err := podFactory.pod(t.Context(), build)
	if err != nil {
		t.Fatal(err)
	}
	container := pod.Spec.Containers[0]
	if pod.Spec.NodeSelector["disk"] != "ssd" || pod.Spec.NodeSelector["zone"] != "build" || len(pod.Spec.Tolerations) != 1 ||
		pod.Annotations["from"] != "default" || pod.Annotations["team"] != "platform" || pod.Annotations[buildv1.BuildAnnotation] != "app-1" {
		t.Errorf("the pod is %+v", pod)
	}
	if container.Resources.Limits.Cpu().String() != "1" || container.Resources.Limits.Memory().String() != "2Gi" {
		t.Errorf("limits are %+v", container.Resources.Limits)
	}
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	if env["HTTP_PROXY"] != "http://proxy" || env["NO_PROXY"] != "example.com" {
		t.Errorf("variables are %v", env)
	}
	buildForPod := build.DeepCopy()
	settings.applyTo(&buildForPod.Spec)
	if labels := buildForPod.Spec.Output.ImageLabels; len(labels) != 2 || labels[0] != label("a", "own") || labels[1] != label("b", "override") {
		t.Errorf("labels are %+v", labels)
	}
	if !buildForPod.Spec.Strategy.DockerStrategy.ForcePull || *buildForPod.Spec.Source.Git.HTTPProxy != "http://git-proxy" {
		t.Errorf("builder receives %+v", buildForPod.Spec)
	}
}

// Templates set an environment variable to "" if the corresponding parameter has no value.
func TestDefaultsReplaceEmptyVariables(t *testing.T) {
	secret := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "url"}}
	for _, tt := range []struct {
		name      string
		own, want corev1.EnvVar
	}{
		{"empty variable", corev1.EnvVar{Name: "PIP_INDEX_URL"}, corev1.EnvVar{Name: "PIP_INDEX_URL", Value: "http://mirror"}},
		{"own mirror", corev1.EnvVar{Name: "PIP_INDEX_URL", Value: "http://own"}, corev1.EnvVar{Name: "PIP_INDEX_URL", Value: "http://own"}},
		{"mirror of a secret", corev1.EnvVar{Name: "PIP_INDEX_URL", ValueFrom: secret}, corev1.EnvVar{Name: "PIP_INDEX_URL", ValueFrom: secret}},
		{"empty proxy", corev1.EnvVar{Name: "https_proxy"}, corev1.EnvVar{Name: "https_proxy"}},
		{"empty variable without a default", corev1.EnvVar{Name: "OTHER"}, corev1.EnvVar{Name: "OTHER"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			settings := &Settings{Defaults: legacyv1.BuildDefaultsConfig{Env: []corev1.EnvVar{
				{Name: "PIP_INDEX_URL", Value: "http://mirror"}, {Name: "https_proxy", Value: "http://proxy"},
			}}}
			spec := &buildv1.BuildSpec{}
			spec.Strategy.SourceStrategy = &buildv1.SourceBuildStrategy{Env: []corev1.EnvVar{tt.own}}
			settings.applyTo(spec)
			var got []corev1.EnvVar
			for _, v := range spec.Strategy.SourceStrategy.Env {
				if v.Name == tt.own.Name {
					got = append(got, v)
				}
			}
			if diff := cmp.Diff([]corev1.EnvVar{tt.want}, got); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSourceSecretMatchesRepository(t *testing.T) {
	secret := func(name, pattern string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"build.openshift.io/source-secret-match-uri-1": pattern}}}
	}
	secrets := []corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, secret("all", "https://*/*"), secret("domain", "https://*.example.com/*"),
		secret("team", "https://git.example.com/team/*"), secret("ssh", "ssh://git.example.com/*"), secret("wrong", "git.example.com/*"),
	}
	for repository, want := range map[string]string{
		"https://git.example.com/team/app.git": "team", "https://git.example.com/other.git": "domain", "https://elsewhere.org/a/b": "all",
		"git@git.example.com:team/app.git": "ssh", "ssh://git@git.example.com/app.git": "ssh", "http://git.example.com/app.git": "",
		"https://example.com.evil.org/team/app.git": "all", "/local/path": "", "https://git.example.com/teams/app.git": "domain",
	} {
		match := ""
		if secret := sourceSecret(secrets, repository); secret != nil {
			match = secret.Name
		}
		if match != want {
			t.Errorf("%s: secret is %q, want %q", repository, match, want)
		}
	}
}

func TestVariablesReferToFields(t *testing.T) {
	build := build()
	build.Labels = map[string]string{"team": "red"}
	field := func(path string) corev1.EnvVar {
		return corev1.EnvVar{Name: path, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	build.Spec.Strategy.DockerStrategy.Env = []corev1.EnvVar{field("metadata.name"), field("metadata.labels['team']"),
		{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}}}}
	if err := resolveFields(build); err != nil {
		t.Fatal(err)
	}
	env := build.Spec.Strategy.DockerStrategy.Env
	if env[0].Value != "app-1" || env[1].Value != "red" || env[2].ValueFrom == nil {
		t.Errorf("variables are %+v", env)
	}
	build.Spec.Strategy.DockerStrategy.Env = []corev1.EnvVar{field("status.hostIP")}
	if err := resolveFields(build); err == nil {
		t.Error("field of a pod was resolved")
	}
}

func TestPruneKeepsNewestBuilds(t *testing.T) {
	var builds []*buildv1.Build
	for i, name := range []string{"oldest", "newest", "middle"} {
		builds = append(builds, &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix([]int64{1, 3, 2}[i]*int64(time.Minute.Seconds()), 0)}})
	}
	if old := beyondLimit(builds, ptr.To[int32](1)); len(old) != 2 || old[0].Name != "middle" || old[1].Name != "oldest" {
		t.Errorf("beyond the limit are %+v", old)
	}
	if len(beyondLimit(builds, nil)) != 0 || len(beyondLimit(builds, ptr.To[int32](5))) != 0 || len(beyondLimit(builds, ptr.To[int32](0))) != 3 {
		t.Error("limit is not applied")
	}
}
