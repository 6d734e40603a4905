package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/internal/podbandwidth"
)

func TestNetworkAnnotationsAreChecked(t *testing.T) {
	privileged := corev1.PodSpec{InitContainers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	for _, tt := range []struct {
		name     string
		old, new map[string]string
		spec     corev1.PodSpec
		user     user.DefaultInfo
		want     string // "" if the pod is accepted
	}{
		{name: "limits", new: map[string]string{podbandwidth.Ingress: "10M", podbandwidth.Egress: "10M"}},
		{name: "limit without a number", new: map[string]string{podbandwidth.Egress: "fast"}, want: `kubernetes.io/egress-bandwidth is "fast", must be`},
		{name: "changed limit", old: map[string]string{podbandwidth.Egress: "1M"}, new: map[string]string{podbandwidth.Egress: "1"}, want: "from 1k to 1P"},
		{name: "limit of an earlier version", old: map[string]string{podbandwidth.Egress: "1"}, new: map[string]string{podbandwidth.Egress: "1"}},
		{name: "device of a privileged pod", new: map[string]string{macvlan.Annotation: "true"}, spec: privileged},
		{name: "named device of a privileged pod", new: map[string]string{macvlan.Annotation: "eth1"}, spec: privileged},
		{name: "invalid device", new: map[string]string{macvlan.Annotation: "a/b"}, spec: privileged, want: "network interface of the node"},
		{name: "device of another pod", new: map[string]string{macvlan.Annotation: "true"}, want: "requires a privileged container"},
		{name: "device added later", old: map[string]string{}, new: map[string]string{macvlan.Annotation: "eth0"}, want: "requires a privileged container"},
		{name: "no device", new: map[string]string{macvlan.Annotation: "false"}},
		{
			name: "mirror pod", new: map[string]string{macvlan.Annotation: "true", corev1.MirrorPodAnnotationKey: "x"}, spec: corev1.PodSpec{NodeName: "one"},
			user: user.DefaultInfo{Name: "system:node:one", Groups: []string{user.NodesGroup}},
		},
		{
			name: "forged mirror pod", new: map[string]string{macvlan.Annotation: "true", corev1.MirrorPodAnnotationKey: "x"}, spec: corev1.PodSpec{NodeName: "one"},
			want: "requires a privileged container",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: tt.new}, Spec: tt.spec}
			var old *corev1.Pod
			operation := admission.Create
			if tt.old != nil {
				old = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tt.old}, Spec: tt.spec}
				operation = admission.Update
			}
			attributes := admission.NewAttributesRecord(pod, old, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "web",
				corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, &tt.user)
			err := newNetwork().Validate(t.Context(), attributes, nil)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
