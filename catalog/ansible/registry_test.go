package ansible

import (
	"testing"

	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestImagesWithSimilarNamesHaveTheirOwnStreams(t *testing.T) {
	images := []string{"team/a-b-apb", "team/a/b-apb", "team-a/b-apb"}
	for first := range images {
		client := imagefake.NewClientset().ImageV1()
		b := &broker{images: client}
		r := &Registry{Name: "hub", URL: "https://hub.example.com:5000", Tag: "stable"}
		names := map[string]string{}
		for round := range 3 {
			if round == 2 {
				r.URL = "https://new.example.com" // simulate a registry that has moved
			}
			for i := range images {
				image := images[(first+i)%len(images)]
				if err := b.importImage(t.Context(), r, image); err != nil {
					t.Fatal(err)
				}
				stream, name, err := b.streamOf(t.Context(), r, image)
				if err != nil || stream == nil || stream.Name != name || stream.Spec.Tags[0].From.Name != r.server()+"/"+image+":stable" {
					t.Fatalf("the stream of %q is %+v, %v", image, stream, err)
				}
				if names[image] != "" && names[image] != name {
					t.Errorf("the stream of %q was renamed from %q to %q", image, names[image], name)
				}
				names[image] = name
			}
		}
		if list, err := client.ImageStreams(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != len(images) || names[images[first]] != "hub-team-a-b-apb" {
			t.Errorf("%d streams for %v: %v", len(list.Items), names, err)
		}
	}
}
