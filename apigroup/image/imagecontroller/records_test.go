package imagecontroller

import (
	"errors"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/controller"
)

func recordHead(name, project string, managed bool) *metav1.PartialObjectMetadata {
	head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{record.ProjectLabel: project}}}
	head.SetGroupVersionKind(imagev1.GroupVersion.WithKind("Image"))
	if managed {
		head.Annotations = map[string]string{record.Managed: "true"}
	}
	return head
}

func streamOf(project, image string) *imagev1.ImageStream {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "app"}}
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "latest", Items: []imagev1.TagEvent{{Image: image}}}}
	return stream
}

func TestRecordsOfDeletedProjectsAreRemoved(t *testing.T) {
	objects := []*metav1.PartialObjectMetadata{
		recordHead("unused", "old", false), recordHead("used", "old", false), recordHead("own-stream", "old", false),
		recordHead("pushed", "old", true), recordHead("other", "shop", false), recordHead("of-new", "new", false),
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var stored []runtime.Object
	for _, object := range objects {
		stored = append(stored, object)
	}
	shop, created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	client := metadatafake.NewSimpleMetadataClient(scheme, stored...)
	deps := &controller.Deps{
		Kube: fake.NewClientset(shop, created), Metadata: client,
		Images: imagefake.NewSimpleClientset(), //nolint: the generated client of images has no other
	}
	deps.Init()
	r, err := newRecords(deps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newRecords(deps); err != nil {
		t.Errorf("after a restart of the controller: %v", err)
	}
	fill := func(informer cache.SharedIndexInformer, objects ...any) {
		for _, object := range objects {
			if err := informer.GetStore().Add(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(r.streams, streamOf("shop", "used"), streamOf("old", "own-stream"))
	fill(r.namespaces, shop) // the cache does not contain the new namespace yet
	for _, object := range objects {
		fill(r.images, object)
	}
	images := deps.Metadata.Resource(imagev1.GroupVersion.WithResource("images"))
	isLimited := true
	client.PrependReactor("patch", "images", func(clienttesting.Action) (bool, runtime.Object, error) {
		return isLimited, nil, apierrors.NewInternalError(errors.New("too many large objects"))
	})
	if err := r.reconcile(t.Context(), "old"); err == nil {
		t.Error("a change that the API server rejects is not retried")
	}
	isLimited = false
	for _, name := range []string{"unused", "own-stream"} {
		if _, err := images.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("record %q waits for unrelated changes: %v", name, err)
		}
	}
	for _, project := range []string{"old", "shop", "new", "unknown"} {
		if err := r.reconcile(t.Context(), project); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"used": "shop", "pushed": "old", "other": "shop", "of-new": "new"} {
		head, err := images.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || head.Labels[record.ProjectLabel] != want {
			t.Errorf("record %q has labels %v, %v, want project %q", name, head.Labels, err, want)
		}
	}
}
