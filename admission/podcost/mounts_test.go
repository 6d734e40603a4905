package podcost

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

func TestMountsOfPodAreLimited(t *testing.T) {
	containers := func(number int) []corev1.Container { return make([]corev1.Container, number) }
	volumes := func(number int) []corev1.Volume { return make([]corev1.Volume, number) }
	parts := func(number int, mount corev1.VolumeMount) []corev1.Container {
		var list []corev1.VolumeMount
		for range number {
			list = append(list, mount)
		}
		return []corev1.Container{{VolumeMounts: list}}
	}
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want int
	}{
		"containers":        {corev1.PodSpec{Containers: containers(2), InitContainers: containers(3), EphemeralContainers: make([]corev1.EphemeralContainer, 4)}, 9},
		"volumes":           {corev1.PodSpec{Containers: containers(1), Volumes: volumes(5)}, 6},
		"parts of volumes":  {corev1.PodSpec{Containers: parts(5, corev1.VolumeMount{SubPath: "a"})}, 6},
		"expanded parts":    {corev1.PodSpec{InitContainers: parts(5, corev1.VolumeMount{SubPathExpr: "$(A)"})}, 6},
		"whole volumes":     {corev1.PodSpec{Containers: parts(1000, corev1.VolumeMount{})}, 1},
		"the limit":         {corev1.PodSpec{Containers: containers(20), Volumes: volumes(360)}, maxMounts},
		"one more":          {corev1.PodSpec{Containers: containers(20), Volumes: volumes(361)}, maxMounts + 1},
		"too many subPaths": {corev1.PodSpec{Containers: parts(maxMounts, corev1.VolumeMount{SubPath: "a"})}, maxMounts + 1},
	} {
		if got := mountsOf(&tt.spec); got != tt.want {
			t.Errorf("%s: %d mounts, want %d", name, got, tt.want)
		}
		for subresource, operation := range map[string]admission.Operation{"": admission.Create, "ephemeralcontainers": admission.Update} {
			err := (plugin{expand: expand}).Validate(t.Context(), admission.NewAttributesRecord(&corev1.Pod{Spec: tt.spec}, nil, schema.GroupVersionKind{}, "", "",
				corev1.SchemeGroupVersion.WithResource("pods"), subresource, operation, nil, false, nil), nil)
			if (err == nil) != (tt.want <= maxMounts) || err != nil && !strings.Contains(err.Error(), "use several pods") {
				t.Errorf("%s, subresource %q: %v", name, subresource, err)
			}
		}
	}
}
