package retention

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// everything returns rules that keep no unreferenced image.
func everything() Rules { return Rules{External: true} }

func TestUnreferencedImagesAreGarbage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rules  func(*Rules)
		change func(*State)
		want   []int // numbers of the images
	}{
		{"no rule and no reference", nil, nil, []int{1, 2, 3, 4}},
		{"only images of the cluster's registry", func(r *Rules) { r.External = false }, func(s *State) {
			s.Images[1].Annotations = map[string]string{record.Managed: "true"}
		}, []int{2}},
		{"young images", func(r *Rules) { r.Younger = time.Hour }, func(s *State) {
			s.Images[0].CreationTimestamp = metav1.NewTime(now().Add(-time.Minute))
		}, []int{2, 3, 4}},
		{"age of an image equals the minimum age", func(r *Rules) { r.Younger = 24 * time.Hour }, nil, []int{1, 2, 3, 4}},
		{"revisions", func(r *Rules) { r.Revisions = 1 }, nil, []int{1, 2, 4}},
		{"more revisions than entries", func(r *Rules) { r.Revisions = 5 }, nil, []int{1, 4}},
		{"young entry of a history", func(r *Rules) { r.Younger = time.Hour }, func(s *State) {
			s.Streams[0].Status.Tags[0].Items[1].Created = metav1.NewTime(now().Add(-time.Minute))
		}, []int{1, 3, 4}},
		{"young stream", func(r *Rules) { r.Younger = time.Hour }, func(s *State) {
			s.Streams[0].CreationTimestamp = metav1.NewTime(now().Add(-time.Minute))
		}, []int{1, 4}},
		{"history of another project", func(r *Rules) { r.Namespace = "bakery" }, nil, []int{1, 4}},
		{"history of the project", func(r *Rules) { r.Namespace = "shop" }, nil, []int{1, 2, 3, 4}},
		{"reference to a tag", nil, func(s *State) { s.References.addName(Owner{}, "shop", "registry:5000/shop/app") }, []int{1, 2, 4}},
		{"reference to another tag", nil, func(s *State) { s.References.addName(Owner{}, "shop", "registry:5000/shop/app:v2") }, []int{1, 2, 3, 4}},
		{"reference to a digest", nil, func(s *State) { s.References.addName(Owner{}, "shop", "other/app@"+id(2)) }, []int{1, 3, 4}},
		{"stream follows a digest", func(r *Rules) { r.Revisions = 1 }, func(s *State) {
			s.Streams[0].Spec.Tags = []imagev1.TagReference{{Name: "none"}, {Name: "pin", From: &corev1.ObjectReference{Name: "app@" + id(4)}}}
		}, []int{1, 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules, s := everything(), newState()
			if tt.rules != nil {
				tt.rules(&rules)
			}
			if tt.change != nil {
				tt.change(&s)
			}
			expectImages(t, tt.want, rules.Find(s, now()).Images)
		})
	}
}

func expectImages(t *testing.T, want []int, images []imagev1.Image) {
	t.Helper()
	names := func(numbers []int) (all []string) {
		for _, n := range numbers {
			all = append(all, id(n))
		}
		return all
	}
	var got []string
	for _, image := range images {
		got = append(got, image.Name)
	}
	if diff := cmp.Diff(names(want), got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestImagesAboveLimitOfProjectAreGarbage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*State)
		want   []int
	}{
		// Images 3 and 2 are in the stream. Images 1 and 4 are not in any stream.
		{"no project has a limit", func(*State) {}, []int{1, 4}},
		{"another project has a limit", func(s *State) { s.Limits["bakery"] = 1 }, []int{1, 4}},
		{"the limit is the size of an image", func(s *State) { s.Limits["shop"] = 2 }, []int{1, 3, 4}},
		{"an image above the limit is in use", func(s *State) {
			s.Limits["shop"] = 1
			s.References.addName(Owner{}, "shop", "registry:5000/shop/app")
		}, []int{1, 2, 4}},
		{"the age does not matter", func(s *State) {
			s.Limits["shop"] = 2
			s.Streams[0].CreationTimestamp, s.Images[2].CreationTimestamp = metav1.NewTime(now()), metav1.NewTime(now())
		}, []int{1, 3, 4}},
		{"a stream follows a digest", func(s *State) {
			s.Limits["shop"] = 2
			s.Streams[0].Spec.Tags = []imagev1.TagReference{{Name: "pin", From: &corev1.ObjectReference{Name: "app@" + id(3)}}}
		}, []int{1, 3, 4}},
		{"the image of an entry does not exist", func(s *State) {
			s.Limits["shop"] = 1
			s.Streams[0].Status.Tags[0].Items[1].Image = id(9)
		}, []int{1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newState()
			s.Limits = map[string]int64{}
			tt.change(&s)
			rules := Rules{OverSize: true, External: true, Younger: time.Hour, Revisions: 3}
			expectImages(t, tt.want, rules.Find(s, now()).Images)
		})
	}
}

func TestIndexKeepsItsImages(t *testing.T) {
	s := newState()
	// Image 9 does not exist.
	s.Images[0].DockerImageManifests = []imagev1.ImageManifest{{Digest: id(2)}, {Digest: id(9)}}
	s.Images[1].DockerImageManifests = []imagev1.ImageManifest{{Digest: id(4)}}
	s.References.addName(Owner{}, "shop", "app@"+id(1))
	expectImages(t, []int{3}, everything().Find(s, now()).Images)
}

func TestHistoryLosesRemovedImages(t *testing.T) {
	s := newState()
	s.Streams[0].Status.Tags = append(s.Streams[0].Status.Tags, imagev1.NamedTagEventList{Tag: "old", Items: []imagev1.TagEvent{{Image: id(1)}}},
		imagev1.NamedTagEventList{Tag: "kept", Items: []imagev1.TagEvent{{Image: id(3)}}})
	s.Streams = append(s.Streams, imagev1.ImageStream{ObjectMeta: dayOld("shop", "other")})
	s.References.addName(Owner{}, "shop", "app@"+id(3))
	streams := everything().Find(s, now()).Streams
	if len(streams) != 1 {
		t.Fatalf("got %d streams, want 1", len(streams))
	}
	got := streams[0]
	if diff := cmp.Diff([][]string{{"latest"}, {"old"}}, [][]string{got.Updated, got.Deleted}); diff != "" {
		t.Errorf("updated and deleted tags (-want +got):\n%s", diff)
	}
	want := []imagev1.NamedTagEventList{{Tag: "latest", Items: s.Streams[0].Status.Tags[0].Items[:1]}, {Tag: "kept", Items: []imagev1.TagEvent{{Image: id(3)}}}}
	if diff := cmp.Diff(want, got.Stream.Status.Tags); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if len(s.Streams[0].Status.Tags[0].Items) != 2 {
		t.Error("the stream in the state has changed")
	}
}

func TestImagesInHistoryAreNotUnused(t *testing.T) {
	s := newState()
	s.Images[2].DockerImageManifests = []imagev1.ImageManifest{{Digest: id(4)}}
	garbage := everything().Find(s, now())
	expectImages(t, []int{1, 2, 3, 4}, garbage.Images)
	expectImages(t, []int{1}, garbage.Unused(s))
	s.Streams = nil
	expectImages(t, []int{1, 2, 3, 4}, garbage.Unused(s))
}

func TestSizeIsThatOfMetadataOrLayers(t *testing.T) {
	layers := []imagev1.ImageLayer{{LayerSize: 3}, {LayerSize: 4}}
	for _, tt := range []struct {
		name, metadata string
		want           int64
	}{{"no metadata", "", 7}, {"metadata without a size", `{"Id":"x"}`, 7}, {"size in the metadata", `{"Size":9}`, 9}, {"damaged metadata", "{", 7}} {
		image := &imagev1.Image{DockerImageLayers: layers, DockerImageMetadata: runtime.RawExtension{Raw: []byte(tt.metadata)}}
		if got := SizeOf(image); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestContentIsRemovedFromAllRepositories(t *testing.T) {
	s := newState()
	managed := map[string]string{record.Managed: "true"}
	s.Images[1].DockerImageReference, s.Images[1].Annotations = "registry:5000/shop/app@"+id(2), managed
	s.Images[2].DockerImageReference, s.Images[2].Annotations = "registry:5000/old/app@"+id(3), managed
	// Image 4 is not in the cluster's registry.
	s.Images[3].DockerImageReference = "quay.example.com/team/app@" + id(4)
	s.Images[2].DockerImageLayers[0].Name = "sha256:layer"
	s.Streams[0].Status.Tags = append(s.Streams[0].Status.Tags, imagev1.NamedTagEventList{Tag: "again", Items: []imagev1.TagEvent{{Image: id(3)}}})
	want := []record.GarbageImage{
		{Digest: id(2), Repositories: []string{"shop/app"}, Blobs: []string{""}},
		{Digest: id(3), Repositories: []string{"shop/app", "old/app"}, Blobs: []string{"sha256:layer"}},
		{Digest: id(4), Blobs: []string{""}},
	}
	if diff := cmp.Diff(want, InRegistry(s.Images[1:], s.Streams)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}
