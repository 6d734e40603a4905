package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestServiceAuthorityAddsCAToTokenVolume(t *testing.T) {
	plugin, err := AuthorityFeature("authorities", "service-ca.crt").Admission[0].New(nil)
	if err != nil {
		t.Fatal(err)
	}
	projected := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "kube-api-access-none"}, projected("own"), projected("kube-api-access-x2")}}}
	for range 2 { // the second pass must not add the file again
		if err := plugin.(admission.MutationInterface).Admit(t.Context(), creating(pod, "pods", &user.DefaultInfo{}), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(pod.Spec.Volumes[1].Projected.Sources); n != 1 {
		t.Errorf("a volume of the pod's author has %d sources", n)
	}
	sources := pod.Spec.Volumes[2].Projected.Sources
	if len(sources) != 2 {
		t.Fatalf("the volume has %d sources besides the token", len(sources)-1)
	}
	got := sources[1].ConfigMap
	if got.Name != "authorities" || got.Items[0] != (corev1.KeyToPath{Key: "service-ca.crt", Path: "service-ca.crt"}) || !*got.Optional {
		t.Errorf("the authority is from %v", got)
	}
}
