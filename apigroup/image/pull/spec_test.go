package pull

import (
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestPullSpecNamesRepositoryOfStream(t *testing.T) {
	const (
		image      = "sha256:2d1e8f6a4a7b4d1fb7ad0a2d3f1ff9d0cbb5f1cf8c0c8f0f7c5a7cb6f5f7a001"
		repository = "registry:5000/prod/app"
		inCluster  = "registry:5000/dev/app@" + image
		elsewhere  = "registry.example.com/app@" + image
	)
	copied := &corev1.ObjectReference{Kind: "ImageStreamImage", Namespace: "dev", Name: "app@" + image}
	tags := map[string]struct {
		spec        *imagev1.TagReference
		from        string
		want        string
		withoutHost bool
	}{
		"pushed":                         {from: inCluster, want: inCluster},
		"copy of the cluster's registry": {spec: &imagev1.TagReference{From: copied}, from: inCluster, want: repository + "@" + image},
		"reference":                      {spec: &imagev1.TagReference{From: copied, Reference: true}, from: inCluster, want: inCluster},
		"copy of another registry":       {spec: &imagev1.TagReference{From: copied}, from: elsewhere, want: elsewhere},
		"import of the cluster's registry": {
			spec: &imagev1.TagReference{From: &corev1.ObjectReference{Kind: "DockerImage", Name: inCluster}}, from: inCluster, want: inCluster,
		},
		"local": {
			spec: &imagev1.TagReference{ReferencePolicy: imagev1.TagReferencePolicy{Type: imagev1.LocalTagReferencePolicy}},
			from: elsewhere, want: repository + "@" + image,
		},
		"cluster without registry": {spec: &imagev1.TagReference{From: copied}, from: inCluster, want: inCluster, withoutHost: true},
	}
	for name, test := range tags {
		t.Run(name, func(t *testing.T) {
			stream := &imagev1.ImageStream{}
			if test.spec != nil {
				test.spec.Name = "latest"
				stream.Spec.Tags = []imagev1.TagReference{*test.spec}
			}
			stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "latest", Items: []imagev1.TagEvent{{Image: image, DockerImageReference: test.from}}}}
			if !test.withoutHost {
				stream.Status.DockerImageRepository = repository
			}
			if got := LatestSpec(stream, "latest"); got != test.want {
				t.Errorf("pull spec is %q, want %q", got, test.want)
			}
		})
	}
	if got := LatestSpec(nil, "latest") + LatestSpec(&imagev1.ImageStream{}, "latest"); got != "" {
		t.Errorf("pull spec of a missing image is %q", got)
	}
}
