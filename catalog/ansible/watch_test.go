package ansible

import (
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/catalog/ansible/v1alpha1"
)

// nextEvents returns the types and names of the next events.
func nextEvents(t *testing.T, w watch.Interface, count int) (events []string) {
	t.Helper()
	for range count {
		select {
		case event := <-w.ResultChan():
			binding, ok := event.Object.(*v1alpha1.BundleBinding)
			if !ok {
				t.Fatalf("the object of the event %s is %+v", event.Type, event.Object)
			}
			events = append(events, string(event.Type)+" "+binding.Name)
		case <-time.After(time.Minute):
			t.Fatalf("the events are %q, want %d", events, count)
		}
	}
	slices.Sort(events)
	return events
}

func TestBindingsAreWatched(t *testing.T) {
	b := &broker{kube: fake.NewClientset()}
	bindings := &view[v1alpha1.BundleBinding, *v1alpha1.BundleBinding]{
		feed: recordFeed(b, bindingObjects),
		list: func(items []v1alpha1.BundleBinding) runtime.Object { return &v1alpha1.BundleBindingList{Items: items} },
	}
	rec := &record{ID: "instance", Namespace: "shop", Bindings: map[string]*bindingRecord{"first": {}}}
	store := func() {
		t.Helper()
		if err := b.store(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	store()
	w, err := bindings.Watch(t.Context(), &internalversion.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		if got := nextEvents(t, w, len(want)); !slices.Equal(got, want) {
			t.Errorf("the events are %q, want %q", got, want)
		}
	}
	expect("ADDED first")
	expect("BOOKMARK ")
	rec.Bindings["second"] = &bindingRecord{}
	store()
	expect("ADDED second", "MODIFIED first")
	delete(rec.Bindings, "first")
	store()
	expect("DELETED first", "MODIFIED second")
	if err := b.kube.CoreV1().Secrets(namespace).Delete(t.Context(), secretName(rec.ID), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("DELETED second")
	w.Stop()
	if _, ok := <-w.ResultChan(); ok {
		t.Error("a stopped watch sends an event")
	}
}

// bundleObjects returns an image stream, and an image stream tag whose image is a bundle.
func bundleObjects(project, name string) []runtime.Object {
	spec := base64.StdEncoding.EncodeToString([]byte("{name: " + name + ", plans: [{name: default}]}"))
	metadata := fmt.Appendf(nil, `{"Config": {"Labels": {%q: %q}}}`, specLabel, spec)
	return []runtime.Object{
		&imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name}},
		&imagev1.ImageStreamTag{
			ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: name + ":" + bundleTag},
			Image:      imagev1.Image{DockerImageMetadata: runtime.RawExtension{Raw: metadata}},
		},
	}
}

// All projects must share one watch, because only the events of a single watch are in the order of
// their versions.
func TestBundlesOfSeveralProjectsAreInOneWatch(t *testing.T) {
	client := imagefake.NewClientset(slices.Concat(bundleObjects("first", "a-apb"), bundleObjects("second", "b-apb"), bundleObjects("other", "c-apb"))...)
	all, err := origins(Options{Namespaces: []string{"first", "second"}, WhiteList: []string{"-apb$"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{images: client.ImageV1(), origins: all}
	bundles := &view[v1alpha1.Bundle, *v1alpha1.Bundle]{feed: b.bundleFeed()}
	w, err := bundles.Watch(t.Context(), &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, object := range bundleObjects("second", "d-apb")[1:] {
		if err := client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.ImageV1().ImageStreams("second").Create(t.Context(), bundleObjects("second", "d-apb")[0].(*imagev1.ImageStream), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for range 3 {
		select {
		case event := <-w.ResultChan():
			names[event.Object.(*v1alpha1.Bundle).Spec.FQName] = true
		case <-time.After(time.Minute):
			t.Fatalf("the bundles are %v", names)
		}
	}
	watches := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "watch" {
			watches++
		}
	}
	if !names["a-apb"] || !names["b-apb"] || !names["d-apb"] || watches != 1 {
		t.Errorf("%d watches have the bundles %v", watches, names)
	}
}
