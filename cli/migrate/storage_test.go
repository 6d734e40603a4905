package migrate

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

// server returns a discovery client for a server with the given resources.
func server(lists ...*metav1.APIResourceList) *discoveryfake.FakeDiscovery {
	return &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}
}

func TestOnlyStoredResourcesAreMigrated(t *testing.T) {
	all := metav1.Verbs{"list", "update"}
	got, err := stored(server(
		&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "secrets", Kind: "Secret", Verbs: all}, {Name: "pods/status", Kind: "Pod", Verbs: all}, {Name: "events", Kind: "Event", Verbs: all},
			{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}}, {Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"list"}},
		}},
		&metav1.APIResourceList{GroupVersion: "image.openshift.io/v1", APIResources: []metav1.APIResource{
			{Name: "imagestreams", Kind: "ImageStream", Verbs: all}, {Name: "imagestreamtags", Kind: "ImageStreamTag", Verbs: all},
		}},
	))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"imagestreams.image.openshift.io", "secrets"}, got); diff != "" || err != nil {
		t.Errorf("resources (-want +got):\n%s\nerror %v", diff, err)
	}
}

func TestUnavailableServerPreventsMigrationOfEverything(t *testing.T) {
	client := server(&metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Verbs: metav1.Verbs{"list", "update"}}}},
		&metav1.APIResourceList{GroupVersion: "metrics.k8s.io/v1"})
	client.PrependReactor("get", "resource", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("unavailable")
	})
	if kinds, err := stored(client); err == nil {
		t.Errorf("got %q, want an error", kinds)
	}
}

func TestBandwidthLimitsTraffic(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": string(make([]byte, 100_000))}}
	canceled, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second))
	defer cancel()
	if err := newTraffic(0).take(canceled, object); err != nil {
		t.Errorf("no limit: %v", err)
	}
	// The object is several times larger than one megabit, so sending it takes longer than a second
	// at one megabit per second. The limiter returns an error without waiting, because the deadline
	// would be exceeded.
	if err := newTraffic(1).take(canceled, object); err == nil {
		t.Error("the limit had no effect")
	}
	if err := newTraffic(1000).take(canceled, object); err != nil {
		t.Errorf("large limit: %v", err)
	}
}
