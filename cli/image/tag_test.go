package image

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAliasesStayInTheirStream(t *testing.T) {
	for name, c := range map[string]struct {
		from corev1.ObjectReference
		want bool
	}{
		"tag of the stream":       {corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "shop", Name: "app:1"}, true},
		"image of the stream":     {corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: "shop", Name: "app@sha256:0"}, true},
		"image of a registry":     {corev1.ObjectReference{Kind: "DockerImage", Name: "app:1"}, true},
		"stream of the same name": {corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "dev", Name: "app:1"}, false},
		"another stream":          {corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "shop", Name: "apps:1"}, false},
		"another repository":      {corev1.ObjectReference{Kind: "DockerImage", Name: "registry.example.com/app:1"}, false},
	} {
		if got := within(&c.from, "shop", "app"); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
