package image

import (
	"context"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

// TestListOfTagsOmitsContentOfImages checks that a list of tags does not contain the same image
// once for each tag. A single tag contains its image.
func TestListOfTagsOmitsContentOfImages(t *testing.T) {
	const digest = "sha256:36f0572e5af3b1357e44cb2e7e1c154406bd07fab943881ab128a14f99f92446"
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, tag := range []string{"a", "b"} {
		stream.Status.Tags = append(stream.Status.Tags, imagev1.NamedTagEventList{
			Tag: tag, Items: []imagev1.TagEvent{{Image: digest, DockerImageReference: "registry/shop/app@" + digest}},
		})
	}
	image := &imagev1.Image{
		ObjectMeta: metav1.ObjectMeta{Name: digest}, DockerImageMetadata: runtime.RawExtension{Raw: []byte(`{"Config":{"Env":["A=long"]}}`)},
	}
	tags := &streamTags{view{
		streams: storetest.New(imagev1.Resource("imagestreams"), &imagev1.ImageStreamList{}, stream),
		images:  storetest.New(imagev1.Resource("images"), &imagev1.ImageList{}, image),
	}, tagTable()}
	ctx := request.WithNamespace(context.Background(), "shop")
	object, err := tags.List(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := object.(*imagev1.ImageStreamTagList).Items
	if len(list) != 2 {
		t.Fatalf("the list has %d tags", len(list))
	}
	for _, tag := range list {
		if tag.Image.Name != digest || tag.Image.DockerImageReference == "" || len(tag.Image.DockerImageMetadata.Raw) > 0 {
			t.Errorf("image of tag %s in the list: %+v", tag.Name, tag.Image)
		}
	}
	object, err = tags.Get(ctx, "app:a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := object.(*imagev1.ImageStreamTag).Image; len(got.DockerImageMetadata.Raw) == 0 {
		t.Errorf("image of the tag: %+v", got)
	}
}
