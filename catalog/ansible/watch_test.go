package ansible

import (
	"slices"
	"testing"
	"time"

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
		feeds: []feed[v1alpha1.BundleBinding]{recordFeed(b, bindingObjects)},
		list:  func(items []v1alpha1.BundleBinding) runtime.Object { return &v1alpha1.BundleBindingList{Items: items} },
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
