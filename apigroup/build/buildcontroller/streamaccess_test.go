package buildcontroller

import (
	"slices"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildfake "github.com/openshift/client-go/build/clientset/versioned/fake"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// accessFor returns a streamAccess that allows one account or group to use one verb on one
// project's streams.
func accessFor(account, verb, namespace string) streamAccess {
	kube := fake.NewClientset()
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().DeepCopyObject().(*kubeauthorizationv1.SubjectAccessReview)
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = (review.Spec.User == account || slices.Contains(review.Spec.Groups, account)) && attributes.Verb == verb && attributes.Namespace == namespace &&
			attributes.Group == "image.openshift.io" && attributes.Resource == "imagestreams" && attributes.Subresource == "layers"
		return true, review, nil
	})
	return streamAccess{kube.AuthorizationV1()}
}

// streamIn returns a project's "app" stream, whose "latest" tag has an image.
func streamIn(namespace string) *imagev1.ImageStream {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
	stream.Status.DockerImageRepository = "registry:5000/" + namespace + "/app"
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "latest", Items: []imagev1.TagEvent{{Image: "sha256:1", DockerImageReference: "registry:5000/" + namespace + "/app@sha256:1"}}}}
	return stream
}

func TestPushToOtherProjectRequiresAccess(t *testing.T) {
	var lines []string
	for name, tt := range map[string]struct {
		streamAccess streamAccess
		output       string // a tag of a stream in project "other"
		isPushed     string
	}{
		"may":                 {accessFor("system:serviceaccount:shop:builder", "update", "other"), "app:latest", "registry:5000/other/app:latest"},
		"may pull":            {accessFor("system:serviceaccount:shop:builder", "get", "other"), "app:latest", ""},
		"other account":       {accessFor("system:serviceaccount:shop:default", "update", "other"), "app:latest", ""},
		"may, missing stream": {accessFor("system:serviceaccount:shop:builder", "update", "other"), "none:latest", ""},
	} {
		podFactory := newPodFactory(t)
		streams := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := streams.Add(streamIn("other")); err != nil {
			t.Fatal(err)
		}
		podFactory.streams, podFactory.access = imagelisters.NewImageStreamLister(streams), tt.streamAccess
		build := build()
		build.Spec.Output.To = &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: "other", Name: tt.output}
		isPushed, err := podFactory.output(t.Context(), build)
		if isPushed != tt.isPushed || (err == nil) != (tt.isPushed != "") {
			t.Errorf("%s: output is %q, %v", name, isPushed, err)
		}
		if err != nil && tt.output == "app:latest" {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("denials differ: %q", lines)
	}
}

func TestTriggerOnOtherProjectRequiresAccess(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace    string
		streamAccess streamAccess
		starts       int
	}{
		"own":        {"shop", accessFor("", "", ""), 1},
		"may":        {"other", accessFor("system:serviceaccount:shop:builder", "get", "other"), 1},
		"all users":  {"other", accessFor("system:authenticated", "get", "other"), 1},
		"may not":    {"other", accessFor("system:serviceaccount:shop:builder", "get", "third"), 0},
		"may push":   {"other", accessFor("system:serviceaccount:shop:builder", "update", "other"), 0},
		"other user": {"other", accessFor("system:serviceaccount:other:builder", "get", "other"), 0},
	} {
		config := &buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site"}}
		config.Spec.Triggers = []buildv1.BuildTriggerPolicy{{Type: buildv1.ImageChangeBuildTriggerType, ImageChange: &buildv1.ImageChangeTrigger{
			From: &corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: tt.namespace, Name: "app:latest"}}}}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := indexer.Add(config); err != nil {
			t.Fatal(err)
		}
		streams := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if err := streams.Add(streamIn(tt.namespace)); err != nil {
			t.Fatal(err)
		}
		client := buildfake.NewClientset(config)
		starts := 0
		client.PrependReactor("create", "buildconfigs", func(action clienttesting.Action) (bool, runtime.Object, error) {
			starts++
			return true, &buildv1.Build{}, nil
		})
		events := record.NewFakeRecorder(10)
		l := &imageChangeController{client.BuildV1(), buildlisters.NewBuildConfigLister(indexer), imagelisters.NewImageStreamLister(streams), tt.streamAccess, events}
		_ = l.reconcile(t.Context(), cache.MetaObjectToName(config)) // can request a requeue
		if starts != tt.starts || (len(events.Events) == 1) != (tt.starts == 0) {
			t.Errorf("%s: instantiated %d builds, want %d or one event; got %d events", name, starts, tt.starts, len(events.Events))
		}
	}
}
