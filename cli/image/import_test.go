package image

import (
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// importable returns an image stream that has importable tags and tags that cannot be imported.
func importable() *imagev1.ImageStream {
	tag := func(name, kind, from string) imagev1.TagReference {
		return imagev1.TagReference{Name: name, From: &corev1.ObjectReference{Kind: kind, Name: from}}
	}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	stream.Spec.Tags = []imagev1.TagReference{
		tag("v1", "DockerImage", "registry.example.com/app:v1"), tag("v2", "DockerImage", "registry.example.com/app:v2"), tag("stable", "ImageStreamTag", "v1"),
		tag("best", "ImageStreamTag", "app:stable"), tag("other", "ImageStreamTag", "lib:v1"), tag("pinned", "ImageStreamImage", "app@sha256:1"),
		tag("round", "ImageStreamTag", "app:round"), {Name: "pushed"},
	}
	stream.Spec.Tags[0].ImportPolicy.Scheduled = true
	return stream
}

func TestImportRequests(t *testing.T) {
	stream := importable()
	stream.Spec.DockerImageRepository = "registry.example.com/app"
	for name, tt := range map[string]struct {
		flags  imageImport
		stream *imagev1.ImageStream
		tag    string
		want   string // "TAG FROM, ...", or part of the error message
	}{
		"a tag":                       {imageImport{}, importable(), "v1", "v1 registry.example.com/app:v1"},
		"tag that follows other tags": {imageImport{}, importable(), "best", "v1 registry.example.com/app:v1"},
		"tag that follows a tag of another stream": {imageImport{}, importable(), "other", "follows a tag of another image stream"},
		"tag that follows itself":                  {imageImport{}, importable(), "round", "follows itself"},
		"tag of an image stream image":             {imageImport{}, importable(), "pinned", "only a tag that refers to a DockerImage can be imported"},
		"tag that does not exist":                  {imageImport{}, importable(), "latest", `the tag "latest" does not exist on the image stream`},
		"pushed tag":                               {imageImport{}, importable(), "pushed", `the tag "pushed" does not exist`},
		"a new one":                                {imageImport{from: "registry.example.com/new"}, importable(), "new", "new registry.example.com/new"},
		"from elsewhere":                           {imageImport{from: "registry.example.com/new"}, importable(), "v1", "pass --confirm"},
		"tag from another source, confirmed":       {imageImport{from: "registry.example.com/new", confirm: true}, importable(), "v1", "v1 registry.example.com/new"},
		"tag latest of a repository":               {imageImport{}, stream, "latest", "latest registry.example.com/app"},
		"all":                                      {imageImport{all: true}, importable(), "", "v1 registry.example.com/app:v1, v2 registry.example.com/app:v2"},
		"all tags of a repository":                 {imageImport{all: true}, stream, "", "all of registry.example.com/app"},
		"all tags of another repository":           {imageImport{all: true, from: "registry.example.com/b"}, stream, "", `imports the repository "registry.example.com/app"`},
		"all tags of a first repository":           {imageImport{all: true, from: "registry.example.com/b"}, importable(), "", "does not import a whole repository yet"},
		"all tags of a new repository, confirmed":  {imageImport{all: true, from: "registry.example.com/b", confirm: true}, stream, "", "all of registry.example.com/b"},
		"all tags of a stream without tags":        {imageImport{all: true}, &imagev1.ImageStream{}, "", "has no tags that refer to images"},
	} {
		request, err := tt.flags.request(tt.stream, tt.tag)
		if err != nil {
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", name, err, tt.want)
			}
			continue
		}
		var got []string
		for _, image := range request.Spec.Images {
			got = append(got, image.To.Name+" "+image.From.Name)
			if image.To.Name == "v1" && tt.flags.from == "" && !image.ImportPolicy.Scheduled {
				t.Errorf("%s: the tag is not scheduled anymore", name)
			}
		}
		if repository := request.Spec.Repository; repository != nil {
			got = append(got, "all of "+repository.From.Name)
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

func TestImportTargets(t *testing.T) {
	for text, tt := range map[string]struct {
		all  bool
		want string
	}{
		"ruby": {false, "ruby latest"}, "ruby:2.5": {false, "ruby 2.5"}, "registry.example.com:5000/team/ruby:2.5": {false, "ruby 2.5"}, "team/ruby": {false, "ruby latest"},
		"team/tools": {true, "tools "}, "ruby:2": {true, "either the tag"}, "ruby@sha256:1": {false, "oc tag"}, "ruby:": {false, "is not the name"}, "team/": {false, "is not the name"},
	} {
		name, tag, err := (&imageImport{all: tt.all}).target(text)
		if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && name+" "+tag != tt.want {
			t.Errorf("%s: %q, %q, %v, want %s", text, name, tag, err, tt.want)
		}
	}
}
