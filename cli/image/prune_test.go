package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/apigroup/image/retention"
	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// now returns the current time for the tests. All objects are one day old unless stated otherwise.
func now() time.Time { return time.Date(2018, 10, 11, 12, 0, 0, 0, time.UTC) }

// id returns the digest of image number n.
func id(n int) string { return fmt.Sprintf("sha256:%064d", n) }

// newImage returns image number n, whose only layer belongs to no other image.
func newImage(n int) *imagev1.Image {
	return &imagev1.Image{
		ObjectMeta:           metav1.ObjectMeta{Name: id(n), CreationTimestamp: metav1.NewTime(now().Add(-24 * time.Hour)), Annotations: map[string]string{record.Managed: "true"}},
		DockerImageReference: "docker-registry.default.svc:5000/shop/app@" + id(n),
		DockerImageLayers:    []imagev1.ImageLayer{{Name: id(1000 + n), LayerSize: int64(n) << 20}},
	}
}

// history returns an image stream in the shop project. For each tag, tags contains the numbers of
// the images in the tag's history, newest first.
func history(name string, tags map[string][]int) *imagev1.ImageStream {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now().Add(-24 * time.Hour))}}
	stream.Status.DockerImageRepository = "docker-registry.default.svc:5000/shop/" + name
	for tag, numbers := range tags {
		list := imagev1.NamedTagEventList{Tag: tag}
		for _, n := range numbers {
			list.Items = append(list.Items, imagev1.TagEvent{Image: id(n), Created: metav1.NewTime(now().Add(-24 * time.Hour)), DockerImageReference: newImage(n).DockerImageReference})
		}
		stream.Status.Tags = append(stream.Status.Tags, list)
	}
	return stream
}

// kinds returns the API version and kind of each type of object that can refer to images.
func kinds() [][2]string {
	return [][2]string{
		{"v1", "Pod"}, {"v1", "ReplicationController"}, {"v1", "LimitRange"}, {"apps/v1", "Deployment"}, {"apps/v1", "ReplicaSet"}, {"apps/v1", "DaemonSet"},
		{"apps/v1", "StatefulSet"}, {"batch/v1", "Job"}, {"batch/v1", "CronJob"}, {"apps.openshift.io/v1", "DeploymentConfig"},
		{"build.openshift.io/v1", "BuildConfig"}, {"build.openshift.io/v1", "Build"},
	}
}

// cluster is a fake cluster, with the state of the `oc adm prune images` command.
type cluster struct {
	*pruning
	images   *imagefake.Clientset
	requests []record.GarbageRequest
	out      bytes.Buffer
	// unreachable means that the registry does not respond.
	unreachable bool
}

func newCluster(using dynamic.Interface, all ...runtime.Object) *cluster {
	c := &cluster{images: imagefake.NewSimpleClientset(all...)}
	c.pruning = &pruning{
		IOStreams: genericiooptions.IOStreams{Out: &c.out, ErrOut: io.Discard},
		client:    using, images: c.images.ImageV1(), keep: retention.Rules{Revisions: 1, Younger: time.Hour, External: true}, confirm: true, pruneRegistry: true,
		registry: func(_ context.Context, _ string, request record.GarbageRequest) (removed record.Garbage, err error) {
			if c.unreachable {
				return removed, errors.New("no such host")
			}
			if len(request.Images) == 0 {
				return removed, nil // an empty request only checks whether the registry responds
			}
			c.requests = append(c.requests, request)
			for _, image := range request.Images {
				for _, repository := range image.Repositories {
					removed.Manifests = append(removed.Manifests, record.GarbageLink{Repository: repository, Digest: image.Digest})
				}
				removed.Blobs = append(removed.Blobs, append(image.Blobs, image.Digest)...)
			}
			return removed, nil
		},
	}
	return c
}

// prune runs the command and returns the numbers of the remaining images.
func (c *cluster) prune(t *testing.T) (remaining []string) {
	t.Helper()
	if err := c.run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	images, err := c.images.ImageV1().Images().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images.Items {
		remaining = append(remaining, strings.TrimLeft(strings.TrimPrefix(image.Name, "sha256:"), "0"))
	}
	slices.Sort(remaining)
	return remaining
}

func TestUnreferencedImagesArePruned(t *testing.T) {
	c := newCluster(objectstest.Client(nil, kinds()...), newImage(1), newImage(2), newImage(3), newImage(4),
		history("app", map[string][]int{"latest": {3, 2, 1}}), history("gone", map[string][]int{"v1": {3}}))
	if remaining := c.prune(t); !slices.Equal(remaining, []string{"3"}) {
		t.Errorf("images %q remain", remaining)
	}
	objectstest.Golden(t, "testdata/prune.golden", c.out.String())
	stream, err := c.images.ImageV1().ImageStreams("shop").Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil || len(stream.Status.Tags[0].Items) != 1 {
		t.Errorf("the stream is %+v, %v", stream, err)
	}
}

func TestNothingIsPrunedWithoutRegistry(t *testing.T) {
	c := newCluster(objectstest.Client(nil, kinds()...), newImage(1), newImage(2), history("app", map[string][]int{"latest": {2, 1}}))
	c.unreachable = true
	if err := c.run(t.Context(), now); err == nil || !strings.Contains(err.Error(), "nothing is removed, because the registry cannot remove content: no such host") {
		t.Errorf("error %v", err)
	}
	for _, action := range c.images.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("without the registry, the command does %s", action.GetVerb())
		}
	}
	c.pruneRegistry = false
	if remaining := c.prune(t); !slices.Equal(remaining, []string{"2"}) {
		t.Errorf("with --prune-registry=false, images %q remain", remaining)
	}
}

func TestPruneDryRunChangesNothing(t *testing.T) {
	c := newCluster(objectstest.Client(nil, kinds()...), newImage(1), newImage(2), history("app", map[string][]int{"latest": {2, 1}}))
	c.confirm = false
	if remaining := c.prune(t); len(remaining) != 2 || len(c.requests) != 1 || !c.requests[0].DryRun {
		t.Errorf("images %q remain, the registry received %+v", remaining, c.requests)
	}
	for _, action := range c.images.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("a dry run does %s", action.GetVerb())
		}
	}
	if !strings.Contains(c.out.String(), "shop/app   Updated   latest") || !strings.Contains(c.out.String(), id(1)) {
		t.Errorf("got\n%s", c.out.String())
	}
}

func TestPruneKeepsImagesWithinLimits(t *testing.T) {
	foreign := newImage(2)
	foreign.Annotations = nil
	young := newImage(3)
	young.CreationTimestamp = metav1.NewTime(now().Add(-time.Minute))
	limit := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "LimitRange", "metadata": map[string]any{"namespace": "shop", "name": "images"},
		"spec": map[string]any{"limits": []any{map[string]any{"type": "openshift.io/Image", "max": map[string]any{"storage": "5Mi"}}}},
	}}
	for name, tt := range map[string]struct {
		keep retention.Rules
		want []string
	}{
		"revisions":         {retention.Rules{Revisions: 2, Younger: time.Hour, External: true}, []string{"3", "4", "6"}},
		"age":               {retention.Rules{External: true}, nil},
		"managed":           {retention.Rules{Revisions: 1, Younger: time.Hour}, []string{"2", "3", "6"}},
		"over the limit":    {retention.Rules{OverSize: true, External: true}, []string{"1", "2", "4"}},
		"another project's": {retention.Rules{Revisions: 1, Younger: time.Hour, External: true, Namespace: "other"}, []string{"1", "2", "3", "4", "6"}},
	} {
		c := newCluster(objectstest.Client([]*unstructured.Unstructured{limit}, kinds()...), newImage(1), foreign, young, newImage(4), newImage(6),
			history("app", map[string][]int{"latest": {6, 4, 2, 1}}))
		c.keep = tt.keep
		if remaining := c.prune(t); !slices.Equal(remaining, tt.want) {
			t.Errorf("%s: images %q remain, want %q", name, remaining, tt.want)
		}
	}
}

// TestReferencedImagesAreKept prunes images once for each object in testdata/users.yaml. In each
// run, only that object refers to image 1.
func TestReferencedImagesAreKept(t *testing.T) {
	objects := objectstest.Load(t, "testdata/users.yaml")
	if len(objects) < 15 {
		t.Fatalf("%d objects", len(objects))
	}
	for _, object := range objects {
		c := newCluster(objectstest.Client([]*unstructured.Unstructured{object}, kinds()...), newImage(1), newImage(2), history("app", map[string][]int{"v1": {1}, "v2": {2}}))
		c.keep.Revisions = 0
		want := []string{"1"}
		if object.GetLabels()["unused"] == "true" {
			want = nil
		}
		if remaining := c.prune(t); !slices.Equal(remaining, want) {
			t.Errorf("with %s %q: images %q remain, want %q", object.GetKind(), object.GetName(), remaining, want)
		}
	}
}

func TestInvalidReferencesStopPrune(t *testing.T) {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "odd"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "No Name!"}}},
	}}
	c := newCluster(objectstest.Client([]*unstructured.Unstructured{pod}, kinds()...), newImage(1))
	if err := c.run(t.Context(), now); err == nil || !strings.Contains(err.Error(), "pod/odd namespace/shop") || !strings.Contains(err.Error(), "--ignore-invalid-refs") {
		t.Errorf("got %v", err)
	}
	c.ignoreInvalids = true
	if remaining := c.prune(t); len(remaining) > 0 {
		t.Errorf("images %q remain", remaining)
	}
}

func TestImageReferencedDuringPruneIsKept(t *testing.T) {
	using := objectstest.Client(nil, kinds()...)
	c := newCluster(using, newImage(1), newImage(2), history("app", map[string][]int{"latest": {2, 1}}))
	conflicts := 0
	c.images.PrependReactor("update", "imagestreams", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "new"},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "docker-registry.default.svc:5000/shop/app@" + id(1)}}},
		}}
		_, err := using.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("shop").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewConflict(imagev1.Resource("imagestreams"), "app", nil)
	})
	if remaining := c.prune(t); !slices.Equal(remaining, []string{"1", "2"}) {
		t.Errorf("images %q remain", remaining)
	}
	if len(c.requests) > 0 {
		t.Errorf("the registry received %+v", c.requests)
	}
}

func TestImageChangedDuringPruneIsKept(t *testing.T) {
	c := newCluster(objectstest.Client(nil, kinds()...), newImage(1), newImage(2))
	c.images.PrependReactor("delete", "images", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion := action.(clienttesting.DeleteAction)
		if deletion.GetDeleteOptions().Preconditions == nil {
			t.Error("an image is removed without a precondition")
		}
		if deletion.GetName() == id(1) {
			return true, nil, apierrors.NewConflict(imagev1.Resource("images"), id(1), nil)
		}
		return false, nil, nil
	})
	if remaining := c.prune(t); !slices.Equal(remaining, []string{"1"}) || len(c.requests) != 1 || len(c.requests[0].Images) != 1 || c.requests[0].Images[0].Digest != id(2) {
		t.Errorf("images %q remain, the registry received %+v", remaining, c.requests)
	}
}

func TestRegistryTokenIsSentOverTLS(t *testing.T) {
	for text, want := range map[string]string{
		"registry.example.com":         "https://registry.example.com/admin/garbage",
		"https://192.0.2.1:5000":       "https://192.0.2.1:5000/admin/garbage",
		"http://registry.example.com/": "",
		"ftp://registry.example.com":   "",
		"":                             "",
	} {
		if got, err := (place{url: text}).target(""); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if got, err := (place{url: "http://r", insecure: true}).target(""); err != nil || got != "http://r/admin/garbage" {
		t.Errorf("%q, %v", got, err)
	}
}
