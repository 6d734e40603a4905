package imagecontroller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	projectv1 "github.com/openshift/api/project/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-platform/slipway/controller"
)

// importer returns a client that records imports and returns err for each of them.
func importer(err error) (*imagefake.Clientset, *[]*imagev1.ImageStreamImport) {
	client, request := imagefake.NewSimpleClientset(), &[]*imagev1.ImageStreamImport{}
	client.PrependReactor("create", "imagestreamimports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		result := action.(clienttesting.CreateAction).GetObject().(*imagev1.ImageStreamImport)
		*request = append(*request, result)
		return true, result, err
	})
	return client, request
}

// app returns a stream with the given number of new tags, and the given number of scheduled tags
// that have been imported before.
func app(pending, scheduled int) *imagev1.ImageStream {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "u", Generation: 3}}
	for i := range pending + scheduled {
		tag := imagev1.TagReference{Name: fmt.Sprintf("v%d", i), Generation: number(2), From: &corev1.ObjectReference{Kind: "DockerImage", Name: "registry.example.com/app"}}
		if i >= pending {
			tag.ImportPolicy.Scheduled = true
			done := imagev1.NamedTagEventList{Tag: tag.Name, Items: []imagev1.TagEvent{{Generation: 2}}}
			stream.Status.Tags = append(stream.Status.Tags, done)
		}
		stream.Spec.Tags = append(stream.Spec.Tags, tag)
	}
	return stream
}

func TestImportRequestContainsFewTagsOfCachedStream(t *testing.T) {
	client, request := importer(nil)
	if err := (&Streams{}).reconcileImports(t.Context(), client.ImageV1(), flowcontrol.NewFakeAlwaysRateLimiter(), app(2*maxTags+1, 0), "project shop"); err != nil {
		t.Fatal(err)
	}
	tags := 0
	for _, result := range *request {
		tags += len(result.Spec.Images)
		if len(result.Spec.Images) > maxTags || result.UID != "u" || result.Generation != 3 || !result.Spec.Import {
			t.Errorf("%d tags into stream %q, generation %d", len(result.Spec.Images), result.UID, result.Generation)
		}
	}
	if tags != 2*maxTags+1 {
		t.Errorf("%d tags are imported", tags)
	}
}

func TestImportRequestContainsTagsOfOneRegistry(t *testing.T) {
	stream := app(6, 0)
	for i := range stream.Spec.Tags {
		stream.Spec.Tags[i].From.Name = []string{"a.example.com/app", "b.example.com/app"}[i%2]
	}
	var got []string
	for _, spec := range importSpecs(stream, false) {
		of := ""
		for _, image := range spec.Images {
			of += image.From.Name[:1] + image.To.Name + " "
		}
		got = append(got, of)
	}
	if want := []string{"av0 av2 av4 ", "bv1 bv3 bv5 "}; !slices.Equal(got, want) {
		t.Errorf("imports of %q, want %q", got, want)
	}
}

func TestCompleteIndexesCountForSeveralTags(t *testing.T) {
	stream := app(8, 0)
	for i := range 7 {
		stream.Spec.Tags[i].ImportPolicy.ImportMode = imagev1.ImportModePreserveOriginal
	}
	var got []int
	for _, spec := range importSpecs(stream, false) {
		got = append(got, len(spec.Images))
	}
	if want := []int{maxTags / perIndex, 3}; !slices.Equal(got, want) {
		t.Errorf("imports of %v tags, want %v", got, want)
	}
}

func TestChangedStreamIsRequeued(t *testing.T) {
	client, request := importer(apierrors.NewConflict(imagev1.Resource("imagestreams"), "app", nil))
	err := (&Streams{}).reconcileImports(t.Context(), client.ImageV1(), flowcontrol.NewFakeAlwaysRateLimiter(), app(2*maxTags, 0), "project shop")
	if err == nil || err.Error() != controller.RequeueAfter(requeueDelay).Error() || len(*request) != 1 {
		t.Errorf("%v after %d imports", err, len(*request))
	}
}

func TestScheduledImportsAreRateLimited(t *testing.T) {
	client, request := importer(nil)
	streams := &Streams{Interval: time.Hour}
	err := streams.reconcileImports(t.Context(), client.ImageV1(), flowcontrol.NewFakeNeverRateLimiter(), app(1, 1), "project shop")
	if err == nil || err.Error() != controller.RequeueAfter(postponeDelay).Error() {
		t.Errorf("%v", err)
	}
	if len(*request) != 1 || len((*request)[0].Spec.Images) != 1 || (*request)[0].Spec.Images[0].To.Name != "v0" {
		t.Errorf("imports %v", *request)
	}
	*request = nil
	err = streams.reconcileImports(t.Context(), client.ImageV1(), flowcontrol.NewFakeAlwaysRateLimiter(), app(1, 1), "project shop")
	if err == nil || err.Error() != controller.RequeueAfter(time.Hour).Error() || len(*request) != 1 || len((*request)[0].Spec.Images) != 2 {
		t.Errorf("within the limit: %v, imports %v", err, *request)
	}
}

func TestRepositoryIsImportedAlone(t *testing.T) {
	stream := app(1, 0)
	stream.Spec.DockerImageRepository = "registry.example.com/app"
	if specs := importSpecs(stream, false); len(specs) != 1 || specs[0].Repository == nil || len(specs[0].Images) != 0 {
		t.Errorf("first %+v", specs)
	}
	stream.Annotations = map[string]string{checkAnnotation: "2026-01-01T11:45:00Z"}
	if specs := importSpecs(stream, false); len(specs) != 1 || specs[0].Repository != nil || len(specs[0].Images) != 1 {
		t.Errorf("then %+v", specs)
	}
}

func TestProjectDoesNotUseAllWorkers(t *testing.T) {
	r := &running{}
	for range maxRunning {
		if !r.begin("shop") {
			t.Fatal("an import within the limit is rejected")
		}
	}
	if r.begin("shop") || !r.begin("other") {
		t.Error("one project exceeds its limit of imports, or blocks another")
	}
	r.end("other")
	r.end("shop")
	if !r.begin("shop") || len(r.owners) != 1 {
		t.Errorf("after the end of an import: %v", r.owners)
	}
}

// importCalls is a client whose imports call a function.
type importCalls struct {
	imageclient.ImageV1Interface
	imageclient.ImageStreamImportInterface
	create func(namespace string)
	in     string
}

func (c importCalls) ImageStreamImports(namespace string) imageclient.ImageStreamImportInterface {
	c.in = namespace
	return c
}

func (c importCalls) Create(context.Context, *imagev1.ImageStreamImport, metav1.CreateOptions) (*imagev1.ImageStreamImport, error) {
	c.create(c.in)
	return nil, nil
}

func TestImportsOfAllProjectsOfUserCountTogether(t *testing.T) {
	informer := func(objects ...any) cache.SharedIndexInformer {
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, nil)
		for _, object := range objects {
			if err := informer.GetIndexer().Add(object); err != nil {
				t.Fatal(err)
			}
		}
		return informer
	}
	var streams, namespaces []any
	projects := []string{"a", "b", "c", "d", "other"}
	for _, project := range projects {
		stream := app(1, 0)
		stream.Namespace = project
		streams = append(streams, stream)
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project, Annotations: map[string]string{
			projectv1.ProjectRequesterAnnotation: map[bool]string{false: "alice", true: "bob"}[project == "other"],
		}}})
	}
	var reconcile func(project string) error
	var running []string
	// While an import runs, reconcile the streams of the other projects.
	finished := false
	client := importCalls{create: func(project string) {
		running = append(running, project)
		for _, next := range projects {
			if !finished && !slices.Contains(running, next) {
				_ = reconcile(next)
			}
		}
		finished = true
	}}
	c := (&Streams{}).importController(client, informer(streams...), informer(namespaces...))
	reconcile = func(project string) error {
		return c.Reconcile(t.Context(), controller.Key{Namespace: project, Name: "app"})
	}
	if err := reconcile("a"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "other"}; !slices.Equal(running, want) {
		t.Errorf("imports run in the projects %v, want %v", running, want)
	}
}
