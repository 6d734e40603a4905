package settings

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
)

// preset returns a preset with an environment variable, a secret, and a mount of the secret.
func preset(name string, env ...corev1.EnvVar) v1alpha1.PodPreset {
	return v1alpha1.PodPreset{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PodPresetSpec{
		Env:     env,
		EnvFrom: []corev1.EnvFromSource{{Prefix: name}},
		Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}},

		VolumeMounts: []corev1.VolumeMount{{Name: "credentials", MountPath: "/db"}},
	}}
}

func TestPresetsAreAddedToEachContainer(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "first"}},
		Containers:     []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "HOST", Value: "db"}}}, {Name: "side"}},
	}}
	presets := []v1alpha1.PodPreset{preset("a", corev1.EnvVar{Name: "HOST", Value: "db"}), preset("b", corev1.EnvVar{Name: "PORT", Value: "3306"})}
	if err := apply(pod, presets); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.InitContainers[0].Env) > 0 || len(pod.Spec.Volumes) != 1 {
		t.Errorf("init container %+v, volumes %+v", pod.Spec.InitContainers[0], pod.Spec.Volumes)
	}
	want := []corev1.EnvVar{{Name: "HOST", Value: "db"}, {Name: "PORT", Value: "3306"}}
	for _, container := range pod.Spec.Containers {
		if diff := cmp.Diff(want, container.Env); diff != "" || len(container.VolumeMounts) != 1 || len(container.EnvFrom) != 2 {
			t.Errorf("container %q: %s\n%+v", container.Name, diff, container)
		}
	}
}

func TestConflictingPresetsLeavePodUnchanged(t *testing.T) {
	variable := preset("variable", corev1.EnvVar{Name: "HOST", Value: "other"})
	volume, mount := preset("volume"), preset("mount")
	volume.Spec.Volumes[0].Secret.SecretName = "other"
	mount.Spec.VolumeMounts[0].SubPath = "other"
	for _, conflicting := range []v1alpha1.PodPreset{variable, volume, mount} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		before := pod.DeepCopy()
		err := apply(pod, []v1alpha1.PodPreset{preset("a", corev1.EnvVar{Name: "HOST", Value: "db"}), conflicting})
		if err == nil || !strings.Contains(err.Error(), conflicting.Name) {
			t.Errorf("preset %q: error %v", conflicting.Name, err)
		}
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Errorf("preset %q: the pod changed: %s", conflicting.Name, diff)
		}
	}
}

func TestPresetsCannotMakePodHuge(t *testing.T) {
	variables := func(count, bytes int) (env []corev1.EnvVar) {
		for i := range count {
			env = append(env, corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: strings.Repeat("x", bytes)})
		}
		return env
	}
	for name, tt := range map[string]struct {
		containers int
		env        []corev1.EnvVar
		ok         bool
	}{
		"many variables in one container":       {1, variables(5_000, 10), true},
		"few variables in many containers":      {30, variables(100, 10), true},
		"many variables in many containers":     {30, variables(5_000, 10), false},
		"a long variable in many containers":    {30, variables(1, 1<<20), false},
		"a long variable in a single container": {1, variables(1, 1<<20), true},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, tt.containers)}}
		err := apply(pod, []v1alpha1.PodPreset{{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: v1alpha1.PodPresetSpec{Env: tt.env}}})
		if count := len(pod.Spec.Containers[0].Env); (err == nil) != tt.ok || (count == len(tt.env)) != tt.ok {
			t.Errorf("%s: %d variables, error %v", name, count, err)
		}
	}
}

// noRules accepts all templates except templates without a container.
type noRules struct{}

func (noRules) DefaultPodTemplate(*corev1.PodTemplateSpec) {}

func (noRules) PodTemplate(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	if template.Spec.Containers[0].Env[0].Name == "" {
		return field.ErrorList{field.Required(at.Child("spec", "containers").Index(0).Child("env").Index(0).Child("name"), "")}
	}
	return nil
}

func TestPresetsAreValidated(t *testing.T) {
	long := preset(strings.Repeat("n", 54), corev1.EnvVar{Name: "HOST"})
	selector := preset("selector", corev1.EnvVar{Name: "HOST"})
	selector.Spec.Selector.MatchLabels = map[string]string{"a b": "c"}
	for _, tt := range []struct {
		preset v1alpha1.PodPreset
		want   []string
	}{
		{preset("valid", corev1.EnvVar{Name: "HOST"}), nil},
		{preset("variable", corev1.EnvVar{}), []string{"spec.env[0].name"}},
		{v1alpha1.PodPreset{}, []string{"spec"}},
		{long, []string{"metadata.name"}},
		{selector, []string{"spec.selector.matchLabels"}},
	} {
		var fields []string
		for _, err := range validate(&tt.preset, noRules{}) {
			fields = append(fields, err.Field)
		}
		if !slices.Equal(fields, tt.want) {
			t.Errorf("preset %q: errors at %v, want %v", tt.preset.Name, fields, tt.want)
		}
	}
}

func TestPodsOfPlatformGetNoPresets(t *testing.T) {
	for name, want := range map[string]bool{
		platform: true, "system:serviceaccount:openshift-infra:build-controller": true,
		"system:serviceaccount:kube-system:replicaset-controller": false, "system:serviceaccount:shop:default": false, "alice": false,
	} {
		if isPlatform(name) != want {
			t.Errorf("pods of %q count as pods of the platform: %t", name, !want)
		}
	}
}
