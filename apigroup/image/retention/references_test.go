package retention

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expectReferences compares the keys of the references, images before tags.
func expectReferences(t *testing.T, name string, r *References, want ...string) {
	t.Helper()
	got := slices.Concat(slices.Sorted(maps.Keys(r.Images)), slices.Sorted(maps.Keys(r.Tags)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: references (-want +got):\n%s", name, diff)
	}
	if err := errors.Join(r.Invalid...); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestImageNamesAreTagsOfStreams(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"registry:5000/shop/app", "shop/app:latest"},
		{"registry:5000/shop/app:v1", "shop/app:v1"},
		{"shop/app:v1", "shop/app:v1"},
		{"app", "bakery/app:latest"},    // a stream of the pod's project with local lookup
		{" app:v2\n", "bakery/app:v2"},  // the kubelet ignores the space, too
		{"shop/app@" + id(1), id(1)},    // a digest
		{"shop/app:v1@" + id(1), id(1)}, // the tag is not significant
		{"library/app", "library/app:latest"},
	} {
		r := NewReferences()
		r.addName(Owner{}, "bakery", tt.text)
		expectReferences(t, tt.text, r, tt.want)
	}
	r := NewReferences()
	r.addName(Owner{}, "bakery", "")
	expectReferences(t, "no name", r)
}

func TestObjectReferencesNameImagesAndTags(t *testing.T) {
	for _, tt := range []struct {
		name string
		from *corev1.ObjectReference
		want []string
	}{
		{"no reference", nil, nil},
		{"no object", &corev1.ObjectReference{Kind: "ImageStreamTag"}, nil},
		{"tag", &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:v1"}, []string{"shop/app:v1"}},
		{"tag of another project", &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "bakery", Name: "app:v1"}, []string{"bakery/app:v1"}},
		{"image of a stream", &corev1.ObjectReference{Kind: "ImageStreamImage", Name: "app@" + id(1)}, []string{id(1)}},
		{"image of a registry", &corev1.ObjectReference{Kind: "DockerImage", Name: "registry:5000/bakery/app"}, []string{"bakery/app:latest"}},
		{"other kind", &corev1.ObjectReference{Kind: "BuildConfig", Name: "app"}, nil},
	} {
		r := NewReferences()
		r.addObject(Owner{}, "shop", tt.from)
		expectReferences(t, tt.name, r, tt.want...)
	}
}

func TestPodsReferToImagesOfContainersAndVolumes(t *testing.T) {
	container := func(image string) []corev1.Container { return []corev1.Container{{Image: image}} }
	status := func(n int) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{ImageID: "registry:5000/shop/app@" + id(n)}, {ImageID: "not pulled yet"}}
	}
	pod := &corev1.Pod{ObjectMeta: dayOld("shop", "app-1"), Spec: corev1.PodSpec{
		InitContainers: container("init"), Containers: container("app"),
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Image: "debug"}}},
		Volumes:             []corev1.Volume{{Name: "empty"}, {VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "data"}}}},
	}, Status: corev1.PodStatus{InitContainerStatuses: status(1), ContainerStatuses: status(2), EphemeralContainerStatuses: status(3)}}
	all := []string{id(1), id(2), id(3), "shop/app:latest", "shop/data:latest", "shop/debug:latest", "shop/init:latest"}
	for _, tt := range []struct {
		name  string
		phase corev1.PodPhase
		since time.Duration
		want  []string
	}{
		{"running", corev1.PodRunning, time.Hour, all},
		{"failed recently", corev1.PodFailed, 48 * time.Hour, all},
		{"succeeded long ago", corev1.PodSucceeded, time.Hour, nil},
		{"failed long ago", corev1.PodFailed, time.Hour, nil},
	} {
		r := NewReferences()
		pod.Status.Phase = tt.phase
		r.addPod(pod, now().Add(-tt.since))
		expectReferences(t, tt.name, r, tt.want...)
	}
}

func TestTriggersReferToTags(t *testing.T) {
	for name, tt := range map[string]struct {
		annotation string
		want       []string
	}{
		"no annotation":      {"", nil},
		"damaged annotation": {"[{", nil},
		"two triggers": {
			`[{"from":{"kind":"ImageStreamTag","name":"app:v1"}},{"from":{"kind":"ImageStreamTag","name":"db:v2","namespace":"bakery"}}]`,
			[]string{"bakery/db:v2", "shop/app:v1"},
		},
	} {
		r := NewReferences()
		r.addTriggers(Owner{}, &metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{"image.openshift.io/triggers": tt.annotation}})
		expectReferences(t, name, r, tt.want...)
	}
}

func TestDeploymentConfigRefersToTemplateAndTriggers(t *testing.T) {
	r := NewReferences()
	r.addDeploymentConfig(&appsv1.DeploymentConfig{ObjectMeta: dayOld("shop", "app"), Spec: appsv1.DeploymentConfigSpec{
		Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "registry:5000/shop/sidecar:v1"}}}},
		Triggers: appsv1.DeploymentTriggerPolicies{
			{Type: appsv1.DeploymentTriggerOnConfigChange},
			{ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
				From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:v1"}, LastTriggeredImage: "registry:5000/shop/app@" + id(1),
			}},
		},
	}})
	expectReferences(t, "all", r, id(1), "shop/app:v1", "shop/sidecar:v1")
	r = NewReferences()
	r.addDeploymentConfig(&appsv1.DeploymentConfig{})
	expectReferences(t, "no template", r)
}

func TestBuildsReferToInputImages(t *testing.T) {
	tag := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: "ImageStreamTag", Name: name}
	}
	docker := tag("docker:v1")
	for name, tt := range map[string]struct {
		spec buildv1.CommonSpec
		want []string
	}{
		"no strategy":           {buildv1.CommonSpec{}, nil},
		"docker":                {buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{From: &docker}}}, []string{"shop/docker:v1"}},
		"docker without a from": {buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{}}}, nil},
		"source":                {buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: tag("ruby:2.5")}}}, []string{"shop/ruby:2.5"}},
		"custom":                {buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: tag("custom:v1")}}}, []string{"shop/custom:v1"}},
		"sources in two images": {buildv1.CommonSpec{Source: buildv1.BuildSource{Images: []buildv1.ImageSource{{From: tag("a:v1")}, {From: tag("b:v1")}}}}, []string{"shop/a:v1", "shop/b:v1"}},
	} {
		r := NewReferences()
		r.addBuild(Owner{}, "shop", &tt.spec)
		expectReferences(t, name, r, tt.want...)
	}
}

func TestInvalidImageNamesNameTheObject(t *testing.T) {
	r := NewReferences()
	r.addTemplate(Owner{Kind: "deployment", Namespace: "shop", Name: "app"}, "shop", &corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "No Name!"}, {Image: "app"}}},
	})
	if len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0].Error(), "deployment/app namespace/shop") {
		t.Errorf("got %v", r.Invalid)
	}
	if len(r.Tags) != 1 {
		t.Errorf("got the tags %v, want the tag of the second container", r.Tags)
	}
}
