package image

import (
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestReferencesNameTheCurrentImage(t *testing.T) {
	current := &imagev1.ImageStreamTag{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app:1"}, Image: imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: "sha256:0"}}}
	for name, c := range map[string]struct {
		tagger tagger
		want   corev1.ObjectReference
	}{
		"copy":      {tagger{}, corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: "shop", Name: "app@sha256:0"}},
		"reference": {tagger{reference: true}, corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: "shop", Name: "app@sha256:0"}},
		"alias":     {tagger{alias: true}, corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "shop", Name: "app:1"}},
	} {
		c.tagger.client, c.tagger.namespace = imagefake.NewSimpleClientset(current).ImageV1(), "shop"
		got, err := c.tagger.find(t.Context(), "app:1")
		if err != nil || *got != c.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestTagWithoutImageIsFollowed(t *testing.T) {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{Name: "1"}}}}
	for source, want := range map[string]corev1.ObjectReference{
		"app:1": {Kind: "ImageStreamTag", Namespace: "shop", Name: "app:1"},
		"app:2": {Kind: "DockerImage", Name: "app:2"},
	} {
		tagger := tagger{client: imagefake.NewSimpleClientset(stream).ImageV1(), namespace: "shop"}
		got, err := tagger.find(t.Context(), source)
		if err != nil || *got != want {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
}
