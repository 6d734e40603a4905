package newapp

import (
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
)

const unbuiltObjects = `
- {kind: Service}
- {kind: BuildConfig, spec: {strategy: {sourceStrategy: {from: {kind: ImageStreamTag, namespace: openshift, name: "php:8"}}}}}
- kind: DeploymentConfig
  spec:
    triggers:
    - {type: ConfigChange}
    - {type: ImageChange, imageChangeParams: {from: {kind: ImageStreamTag, namespace: openshift, name: "mysql:10"}}}
    - {type: ImageChange, imageChangeParams: {from: {kind: ImageStreamTag, name: "own:latest"}}}
`

func TestTemplateWithoutImagesNamesTheCommands(t *testing.T) {
	stream := func(namespace, name, tag, command string, images ...imagev1.TagEvent) *imagev1.ImageStream {
		return &imagev1.ImageStream{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{Name: tag, Annotations: map[string]string{commandAnnotation: command}, From: &corev1.ObjectReference{}}}},
			Status:     imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{Tag: tag, Items: images}}},
		}
	}
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(unbuiltObjects), &list); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range list {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	images := imagefake.NewSimpleClientset(stream("openshift", "php", "8", "build php"), stream("openshift", "mysql", "10", "build mysql"), stream("shop", "own", "latest", "")).ImageV1()
	finder := &Finder{Images: images, Namespace: "shop"}
	err := finder.CheckImages(t.Context(), objects)
	if err == nil || !strings.Contains(err.Error(), "openshift/php:8: build php\n") || !strings.Contains(err.Error(), "openshift/mysql:10: build mysql") || strings.Contains(err.Error(), "own") {
		t.Errorf("the error is %v", err)
	}
	finder.AllowMissingTags = true
	if err := finder.CheckImages(t.Context(), objects); err != nil {
		t.Errorf("with missing tags allowed, the error is %v", err)
	}
	finder = &Finder{Namespace: "shop", Images: imagefake.NewSimpleClientset(
		stream("openshift", "php", "8", "build php", imagev1.TagEvent{Image: "sha256:1"}), stream("openshift", "mysql", "10", "build mysql", imagev1.TagEvent{Image: "sha256:2"})).ImageV1()}
	if err := finder.CheckImages(t.Context(), objects); err != nil {
		t.Errorf("with all images, the error is %v", err)
	}
}
