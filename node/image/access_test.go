package image

import (
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// podAnnotations returns the annotations that the kubelet sends with a pod's image.
func podAnnotations(seen string) map[string]string {
	return map[string]string{"kubernetes.io/config.source": "api", "kubernetes.io/config.seen": seen}
}

func TestKubeletPullsImageWithoutRecordAgain(t *testing.T) {
	host, digest := realRegistry(t)
	f := newPullFixture(t, host)
	f.mirror(t, host, host)
	var recorded atomic.Bool
	f.restart(t, func(s *Service) { s.HasPullRecord = func(string) bool { return recorded.Load() } })
	name := host + "/team/app:1"
	own := &criapi.ImageSpec{Image: name, Annotations: podAnnotations("1")}
	resp, err := f.client.PullImage(t.Context(), &criapi.PullImageRequest{Image: own})
	if err != nil {
		t.Fatal(err)
	}
	sees := func(name string, annotations map[string]string) (bool, error) {
		t.Helper()
		got, err := f.client.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name, Annotations: annotations}})
		return got.GetImage() != nil, err
	}
	names := []string{name, host + "/team/app@" + digest, resp.GetImageRef(), resp.GetImageRef()[:len("sha256:")+12]}
	for _, name := range names {
		if visible, err := sees(name, podAnnotations("2")); visible || err != nil {
			t.Errorf("another pod sees %s without a record: %t, %v", name, visible, err)
		}
		// The kubelet is already creating a container, but the record has been deleted since the
		// kubelet decided that the pod may use the image.
		if _, err := sees(name, nil); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("the user of %s without a record: %v", name, err)
		}
	}
	if visible, err := sees(name, maps.Clone(own.Annotations)); !visible || err != nil {
		t.Errorf("the pod that pulled the image gets no size: %t, %v", visible, err)
	}
	if visible, err := sees(name, own.Annotations); visible || err != nil {
		t.Errorf("the pod that pulled the image sees it twice without a record: %t, %v", visible, err)
	}
	recorded.Store(true)
	for _, name := range names {
		if visible, err := sees(name, podAnnotations("2")); !visible || err != nil {
			t.Errorf("the kubelet does not see %s with a record: %t, %v", name, visible, err)
		}
	}
}

func TestLoadedImageNeedsNoRecord(t *testing.T) {
	f := newPullFixture(t)
	f.restart(t, func(s *Service) { s.HasPullRecord = func(string) bool { return false } })
	path := filepath.Join(t.TempDir(), "app.tar")
	writeDockerArchive(t, path, "registry.example.com/team/app:1")
	if _, err := f.store.LoadArchive(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "kubelet to see the image", func() bool {
		resp, err := f.client.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{
			Image: "registry.example.com/team/app:1", Annotations: podAnnotations("1"),
		}})
		return err == nil && resp.GetImage() != nil
	})
}

// If a pod pulls a copy of a local image, the kubelet creates a record under the image's ID.
func TestCopiedLocalImageRemainsAvailableToAllPods(t *testing.T) {
	f := newPullFixture(t)
	f.restart(t, func(s *Service) { s.HasPullRecord = func(string) bool { return true } })
	tools, err := Tools(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Load(t.Context(), tools); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "kubelet to see the image", func() bool { return f.image(t, ToolsName) != nil })
	resp, err := f.client.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: ToolsName, Annotations: podAnnotations("1")}})
	if err != nil {
		t.Fatal(err)
	}
	if id := resp.GetImage().GetId(); id != ToolsName {
		t.Errorf("the kubelet finds the record of the copy, of image %q", id)
	}
}
