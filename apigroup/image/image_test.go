package image

import (
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestReferences(t *testing.T) {
	for reference, ok := range map[string]bool{
		"ruby": true, "ruby:2.5": true, "centos/ruby-25": true, "registry.example.com:5000/team/app:v1": true, "localhost/app": true,
		"app@" + id: true, "registry.example.com/app:v1@" + id: true, "[2001:db8::1]:5000/app": true,
		"": false, "Ruby": false, "ruby:": false, "a//b": false, "app@sha256:12": false, "registry..example.com/app": false, "app:tag with space": false,
		strings.Repeat("a", 256): false,
	} {
		if err := parse(reference); (err == nil) != ok {
			t.Errorf("%q: %v", reference, err)
		}
	}
}

func TestStreams(t *testing.T) {
	type stream = *imagev1.ImageStream
	tag := func(kind, name string) imagev1.TagReference {
		return imagev1.TagReference{Name: "latest", From: &corev1.ObjectReference{Kind: kind, Name: name}}
	}
	scheduled := tag("ImageStreamTag", "other:v1")
	scheduled.ImportPolicy.Scheduled = true
	for name, tt := range map[string]struct {
		change func(stream)
		want   []string
	}{
		"plain":           {func(stream) {}, nil},
		"repository":      {func(s stream) { s.Spec.DockerImageRepository = "registry.example.com:5000/ruby" }, nil},
		"repository:tag":  {func(s stream) { s.Spec.DockerImageRepository = "ruby:latest" }, []string{"spec.dockerImageRepository"}},
		"long name":       {func(s stream) { s.Namespace = strings.Repeat("n", 252) }, []string{"metadata.name"}},
		"image":           {func(s stream) { s.Spec.Tags = []imagev1.TagReference{tag("DockerImage", "ruby:2.5")} }, nil},
		"invalid image":   {func(s stream) { s.Spec.Tags = []imagev1.TagReference{tag("DockerImage", "Ruby")} }, []string{"spec.tags[0].from.name"}},
		"other kind":      {func(s stream) { s.Spec.Tags = []imagev1.TagReference{tag("Tarball", "a")} }, []string{"spec.tags[0].from.kind"}},
		"image by name":   {func(s stream) { s.Spec.Tags = []imagev1.TagReference{tag("ImageStreamImage", "ruby")} }, []string{"spec.tags[0].from.name"}},
		"twice":           {func(s stream) { s.Spec.Tags = []imagev1.TagReference{{Name: "a"}, {Name: "a"}} }, []string{"spec.tags[1].name"}},
		"invalid tag":     {func(s stream) { s.Spec.Tags = []imagev1.TagReference{{Name: "a b"}} }, []string{"spec.tags[0].name"}},
		"scheduled alias": {func(s stream) { s.Spec.Tags = []imagev1.TagReference{scheduled} }, []string{"spec.tags[0].importPolicy.scheduled"}},
		"unknown policy": {func(s stream) {
			s.Spec.Tags = []imagev1.TagReference{{Name: "a", ReferencePolicy: imagev1.TagReferencePolicy{Type: "Far"}}}
		}, []string{"spec.tags[0].referencePolicy.type"}},
	} {
		s := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "ruby", Namespace: "shop"}}
		tt.change(s)
		setStreamDefaults(s)
		var got []string
		problems := validateStream(t.Context(), s, nil)
		for _, problem := range problems {
			got = append(got, problem.Field)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %q", name, problems, tt.want)
		}
	}
}

func TestTagsThatPointToTagGetItsImage(t *testing.T) {
	stream := &imagev1.ImageStream{
		Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{
			{Name: "latest", From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "2.5"}},
			{Name: "reference", From: &corev1.ObjectReference{Kind: "ImageStreamImage", Name: "ruby@" + id}, Reference: true},
			{Name: "spec", From: &corev1.ObjectReference{Kind: "DockerImage", Name: "ruby:3"}, Reference: true},
			{Name: "external", From: &corev1.ObjectReference{Kind: "DockerImage", Name: "ruby"}},
			{Name: "missing", From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:9"}},
		}},
		Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{Tag: "2.5", Items: []imagev1.TagEvent{{Image: id, DockerImageReference: "ruby@" + id}}}}},
	}
	stream.Name = "ruby"
	old := stream.DeepCopy()
	old.Spec.Tags, old.Generation = nil, 4
	(&streams{}).prepare(t.Context(), stream, old)
	if items := history(stream, "latest"); len(items) != 1 || items[0].Image != id || items[0].Generation != 5 {
		t.Errorf("latest is %+v", items)
	}
	if items := history(stream, "reference"); len(items) != 1 || items[0].Image != id {
		t.Errorf("reference is %+v", items)
	}
	if items := history(stream, "spec"); len(items) != 1 || items[0].Image != "" || items[0].DockerImageReference != "ruby:3" {
		t.Errorf("spec is %+v", items)
	}
	if history(stream, "external") != nil || history(stream, "missing") != nil {
		t.Errorf("tags are %+v", stream.Status.Tags)
	}
	if byName := func(a, b imagev1.TagReference) int { return strings.Compare(a.Name, b.Name) }; !slices.IsSortedFunc(stream.Spec.Tags, byName) {
		t.Errorf("tags are in the order %+v", stream.Spec.Tags)
	}
	if generation := specTag(stream, "external").Generation; generation == nil || *generation != 5 {
		t.Error("the changed tag does not have the stream's new generation")
	}

	second := stream.DeepCopy()
	second.Spec.Tags = slices.DeleteFunc(second.Spec.Tags, func(tag imagev1.TagReference) bool { return tag.Name == "latest" })
	stream.Generation = 5
	(&streams{}).prepare(t.Context(), second, stream)
	if history(second, "latest") != nil || history(second, "2.5") == nil || *second.Spec.Tags[0].Generation != 5 {
		t.Errorf("after removal of a tag: %+v", second)
	}
}

func TestHistoryStartsWithNewestImage(t *testing.T) {
	stream := &imagev1.ImageStream{}
	for _, image := range []string{"a", "b", "b", "a"} {
		addEvent(stream, "latest", imagev1.TagEvent{Image: image})
	}
	var got []string
	for _, event := range history(stream, "latest") {
		got = append(got, event.Image)
	}
	if !slices.Equal(got, []string{"a", "b", "a"}) {
		t.Errorf("history is %q", got)
	}
}

func TestNamesOfViews(t *testing.T) {
	if stream, tag, err := split("ruby:2.5", ":", "imageStreamTag"); stream != "ruby" || tag != "2.5" || err != nil {
		t.Errorf("%q, %q, %v", stream, tag, err)
	}
	if _, digest, err := split("ruby@"+id, "@", "imageStreamImage"); digest != id || err != nil {
		t.Errorf("%q, %v", digest, err)
	}
	for _, name := range []string{"ruby", ":a", "ruby:", "ruby:a:b"} {
		if _, _, err := split(name, ":", "imageStreamTag"); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestContentOfImageIsImmutable(t *testing.T) {
	old := &imagev1.Image{DockerImageManifest: "{}", DockerImageLayers: []imagev1.ImageLayer{{Name: "a"}}}
	image := &imagev1.Image{DockerImageManifest: "{1}"}
	keepContent(t.Context(), image, old)
	if image.DockerImageManifest != "{}" || len(image.DockerImageLayers) != 1 {
		t.Errorf("image is %+v", image)
	}
	if problems := validateImage(t.Context(), &imagev1.Image{}, nil); len(problems) != 1 || problems[0].Field != "dockerImageReference" {
		t.Errorf("problems are %v", problems)
	}
}

func TestTagsColumn(t *testing.T) {
	stream := &imagev1.ImageStream{Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}}
	failed := &imagev1.ImageStream{
		Spec:   imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{{Name: "latest"}, {Name: "next"}}},
		Status: imagev1.ImageStreamStatus{Tags: []imagev1.NamedTagEventList{{Tag: "latest"}}},
	}
	if got := tagText(failed); got != "latest,next" {
		t.Errorf("the tags of a stream with a failed import are %q", got)
	}
	if got := tagText(stream); got != "a,b,c + 1 more..." {
		t.Errorf("shown as %q", got)
	}
}
