package buildcontroller

import (
	"slices"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

func TestBuilderCapabilities(t *testing.T) {
	m := newPodFactory(t)
	m.SeccompProfile = "builds.json"
	standard, custom := build(), build()
	custom.Spec.Strategy = buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: corev1.ObjectReference{Kind: "DockerImage", Name: "custom:1"}}}
	for _, tt := range []struct {
		build *buildv1.Build
		image string
		first int // number of init containers
	}{{standard, m.Image, 0}, {custom, "custom:1", 1}} {
		pod, _, err := m.pod(t.Context(), tt.build)
		if err != nil {
			t.Fatal(err)
		}
		builder := pod.Spec.Containers[0]
		security := builder.SecurityContext
		if *pod.Spec.HostUsers || builder.Image != tt.image || *security.SeccompProfile.LocalhostProfile != m.SeccompProfile || len(pod.Spec.InitContainers) != tt.first {
			t.Errorf("pod is %+v", pod.Spec)
		}
		if got := slices.Contains(security.Capabilities.Add, "NET_ADMIN"); got != (tt.first == 0) {
			t.Errorf("image %s: NET_ADMIN is %t", tt.image, got)
		}
		if !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"NET_RAW"}) {
			t.Errorf("image %s: capabilities are %+v", tt.image, security.Capabilities)
		}
		for _, first := range pod.Spec.InitContainers {
			if first.Image != m.Image || !slices.Equal(first.Args, []string{buildpod.ConfineArgument}) || !slices.Equal(first.SecurityContext.Capabilities.Add, []corev1.Capability{"NET_ADMIN"}) {
				t.Errorf("init container is %+v", first)
			}
		}
	}
}
