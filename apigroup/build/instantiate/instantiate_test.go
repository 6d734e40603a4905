package instantiate

import (
	"slices"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// images returns the "ruby" image stream in the "shop" project, and no other image stream.
func images(namespace, name string) (*imagev1.ImageStream, error) {
	if namespace != "shop" || name != "ruby" {
		return nil, nil
	}
	return &imagev1.ImageStream{Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{
		Tag: "2.5", Items: []imagev1.TagEvent{{Image: "sha256:bbb", DockerImageReference: "registry/ruby@sha256:bbb"}, {Image: "sha256:aaa", DockerImageReference: "registry/ruby@sha256:aaa"}},
	}}}}, nil
}

func config() *buildv1.BuildConfig {
	config := &buildv1.BuildConfig{Spec: buildv1.BuildConfigSpec{RunPolicy: "Serial", CommonSpec: buildv1.CommonSpec{
		Source: buildv1.BuildSource{Git: &buildv1.GitBuildSource{URI: "https://git.example.com/app.git"}},
		Strategy: buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{
			From: corev1.ObjectReference{Kind: TagKind, Name: "ruby:2.5"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
		}},
	}}}
	config.Namespace, config.Name, config.UID, config.Status.LastVersion = "shop", "app", "uid", 3
	config.Labels = map[string]string{"team": "red"}
	return config
}

func TestBuildCombinesConfigurationAndRequest(t *testing.T) {
	request := &buildv1.BuildRequest{
		Env: []corev1.EnvVar{{Name: "B", Value: "3"}}, TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Manually triggered"}},
		Revision:              &buildv1.SourceRevision{Git: &buildv1.GitSourceRevision{Commit: "abc"}},
		SourceStrategyOptions: &buildv1.SourceStrategyOptions{Incremental: ptr.To(true)},
	}
	build, err := Build(config(), request, images)
	if err != nil {
		t.Fatal(err)
	}
	source := build.Spec.Strategy.SourceStrategy
	if build.Name != "app-3" || Number(build) != 3 || ConfigOf(build) != "app" || build.Labels["team"] != "red" || build.Labels["buildconfig"] != "app" ||
		Policy(build) != "Serial" || build.OwnerReferences[0].UID != "uid" || build.Spec.ServiceAccount != "builder" || build.Spec.Revision.Git.Commit != "abc" {
		t.Errorf("build is %+v", build)
	}
	if source.From.Kind != DockerKind || source.From.Name != "registry/ruby@sha256:bbb" || !*source.Incremental ||
		!slices.Equal(source.Env, []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "3"}}) {
		t.Errorf("strategy is %+v", source)
	}
	if config := config(); config.Spec.Strategy.SourceStrategy.From.Kind != TagKind {
		t.Error("the configuration was changed")
	}
}

func TestBinarySourceReplacesOtherSources(t *testing.T) {
	binary := config()
	binary.Spec.Source.Dockerfile = ptr.To("FROM a")
	build, err := Build(binary, &buildv1.BuildRequest{Binary: &buildv1.BinaryBuildSource{AsFile: "Dockerfile"}}, images)
	if err != nil || build.Spec.Source.Git != nil || build.Spec.Source.Dockerfile != nil || build.Spec.Source.Binary.AsFile != "Dockerfile" {
		t.Errorf("the source is %+v, %v", build.Spec.Source, err)
	}
	binary.Spec.Source = buildv1.BuildSource{Binary: &buildv1.BinaryBuildSource{}}
	if build, err = Build(binary, &buildv1.BuildRequest{}, images); err != nil || build.Spec.Source.Binary != nil {
		t.Errorf("source without an upload is %+v, %v", build.Spec.Source, err)
	}
}

func TestResolveImageReferences(t *testing.T) {
	for _, tt := range []struct{ kind, name, want string }{
		{TagKind, "ruby:2.5", "registry/ruby@sha256:bbb"}, {TagKind, "ruby:3.0", ""}, {TagKind, "python:3", ""},
		{ImageKind, "ruby@sha256:aaa", "registry/ruby@sha256:aaa"}, {ImageKind, "ruby@sha256:ccc", ""}, {DockerKind, "busybox", "busybox"},
	} {
		got, err := Images(images).Resolve("shop", &corev1.ObjectReference{Kind: tt.kind, Name: tt.name})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s %s is %q, %v", tt.kind, tt.name, got, err)
		}
	}
}

func TestUpdateTriggersRecordsImages(t *testing.T) {
	watched := config()
	other := &corev1.ObjectReference{Kind: TagKind, Name: "other:1"}
	watched.Spec.Triggers = []buildv1.BuildTriggerPolicy{
		{Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{}}, {Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{From: other}},
	}
	request := &buildv1.BuildRequest{From: other, TriggeredByImage: &corev1.ObjectReference{Kind: DockerKind, Name: "registry/other@sha256:ccc"}}
	if UpdateTriggers(watched, request, images) {
		t.Error("the trigger already has the new image")
	}
	if first, second := watched.Spec.Triggers[0].ImageChange, watched.Spec.Triggers[1].ImageChange; first.LastTriggeredImageID != "registry/ruby@sha256:bbb" ||
		second.LastTriggeredImageID != "registry/other@sha256:ccc" {
		t.Errorf("triggers are %+v and %+v", first, second)
	}
	if !UpdateTriggers(watched, request, images) {
		t.Error("the trigger does not have the image")
	}
}

func TestBuildNeedsImageOfChangedTag(t *testing.T) {
	changed := config()
	changed.Spec.Strategy.SourceStrategy.From.Name = "ruby:9"
	changed.Spec.Triggers = []buildv1.BuildTriggerPolicy{{Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{LastTriggeredImageID: "registry/ruby@sha256:bbb"}}}
	UpdateTriggers(changed, &buildv1.BuildRequest{}, images)
	if build, err := Build(changed, &buildv1.BuildRequest{}, images); err == nil {
		t.Errorf("the build starts with the image of the earlier tag: %+v", build.Spec.Strategy.SourceStrategy.From)
	}
}

func TestCloneHasInputsOfOldBuild(t *testing.T) {
	old, err := Build(config(), &buildv1.BuildRequest{}, images)
	if err != nil {
		t.Fatal(err)
	}
	old.Status.Phase, old.Annotations[buildv1.BuildPodNameAnnotation] = "Failed", "pod"
	clone := Clone(old, &buildv1.BuildRequest{Env: []corev1.EnvVar{{Name: "A", Value: "9"}}}, 4, "x")
	if clone.Name != "app-4" || Number(clone) != 4 || clone.Status.Phase != "New" || clone.Annotations["openshift.io/build.clone-of"] != "app-3" ||
		clone.Annotations[buildv1.BuildPodNameAnnotation] != "" || old.Spec.Strategy.SourceStrategy.Env[0].Value != "1" {
		t.Errorf("clone is %+v", clone)
	}
	if orphan := Clone(old, &buildv1.BuildRequest{}, 0, "x"); orphan.Name != "app-3-x" {
		t.Errorf("name of a clone without configuration is %q", orphan.Name)
	}
}

func TestLongNamesAreTruncated(t *testing.T) {
	long := strings.Repeat("a", 253)
	if name := PodName(long); len(name) != 253 || !strings.HasSuffix(name, "-build") || name == PodName(long[:252]+"b") {
		t.Errorf("pod name is %q", name)
	}
	if PodName("app-1") != "app-1-build" || len(Label(long)) != 63 || Label(strings.Repeat("a", 62)+"-b") != strings.Repeat("a", 62) {
		t.Error("a short name changed, or a label is not valid")
	}
}

func TestNumberIsInAnnotationOrName(t *testing.T) {
	config := &corev1.ObjectReference{Name: "app"}
	for name, tt := range map[string]struct {
		build *buildv1.Build
		want  int64
	}{
		"annotation":    {&buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-7", Annotations: map[string]string{buildv1.BuildNumberAnnotation: "3"}}}, 3},
		"only a name":   {&buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-7"}, Status: buildv1.BuildStatus{Config: config}}, 7},
		"another name":  {&buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-7-x2d"}, Status: buildv1.BuildStatus{Config: config}}, 0},
		"configuration": {&buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "shop-7"}, Status: buildv1.BuildStatus{Config: config}}, 0},
	} {
		if got := Number(tt.build); got != tt.want {
			t.Errorf("%s: the number is %d, want %d", name, got, tt.want)
		}
	}
}
