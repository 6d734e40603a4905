package retention

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// now returns the fixed time that the tests use as the current time. All objects are one day old.
func now() time.Time { return time.Date(2018, 10, 11, 12, 0, 0, 0, time.UTC) }

func dayOld(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(now().Add(-24 * time.Hour))}
}

func id(n int) string { return fmt.Sprintf("sha256:%064d", n) }

// newState returns a State with images 1 to 4 and a stream. The size of each image in bytes is its
// number. The history of the stream's latest tag contains images 3 and 2.
func newState() State {
	s := State{References: NewReferences()}
	for n := 1; n <= 4; n++ {
		s.Images = append(s.Images, imagev1.Image{ObjectMeta: dayOld("", id(n)), DockerImageLayers: []imagev1.ImageLayer{{LayerSize: int64(n)}}})
	}
	stream := imagev1.ImageStream{ObjectMeta: dayOld("shop", "app")}
	event := func(n int) imagev1.TagEvent { return imagev1.TagEvent{Image: id(n), Created: stream.CreationTimestamp} }
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "latest", Items: []imagev1.TagEvent{event(3), event(2)}}}
	s.Streams = append(s.Streams, stream)
	return s
}

func TestUsageNamesUsersAndPrunableImages(t *testing.T) {
	s := newState()
	for name, image := range map[string]string{"by-tag": "registry:5000/shop/app", "by-digest": "other/app@" + id(1)} {
		s.References.addPod(&corev1.Pod{ObjectMeta: dayOld("shop", name), Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}, now())
	}
	tags := []string{"shop/app:latest"}
	want := Usage{Invalid: []string{}, Images: []ImageUsage{
		{Name: id(4), Size: 4, Tags: []string{}, Users: []string{}, Prunable: true},
		{Name: id(3), Size: 3, Tags: tags, Users: []string{"pod shop/by-tag"}},
		{Name: id(2), Size: 2, Tags: tags, Users: []string{}, Prunable: true},
		{Name: id(1), Size: 1, Tags: []string{}, Users: []string{"pod shop/by-digest"}},
	}}
	if difference := cmp.Diff(want, Rules{Revisions: 1, Younger: time.Hour, External: true}.Usage(s, now())); difference != "" {
		t.Error(difference)
	}
}

func TestNothingIsPrunableWithInvalidReference(t *testing.T) {
	s := newState()
	s.References.addPod(&corev1.Pod{ObjectMeta: dayOld("shop", "odd"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "No Name!"}}}}, now())
	usage := Rules{External: true}.Usage(s, now())
	for _, image := range usage.Images {
		if image.Prunable {
			t.Errorf("%s is prunable", image.Name)
		}
	}
	if len(usage.Images) != 4 || len(usage.Invalid) != 1 || !strings.Contains(usage.Invalid[0], "pod/odd namespace/shop") {
		t.Errorf("got %+v", usage)
	}
}
