package unidle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/idling"
)

const idledAt = "2026-01-01T12:00:00Z"

// reader creates and reads objects in the shop namespace.
type reader struct {
	t      *testing.T
	client dynamic.Interface
}

func (r reader) in(resource string) dynamic.ResourceInterface {
	return r.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace("shop")
}

func (r reader) add(resource, kind, name string, annotations map[string]any, replicas int64) {
	r.t.Helper()
	object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "annotations": annotations}}
	if kind == "ReplicationController" {
		object["spec"] = map[string]any{"replicas": replicas}
	}
	if _, err := r.in(resource).Create(r.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// state returns an object's replica count, and whether the object is idle, as text.
func (r reader) state(resource, name string) string {
	r.t.Helper()
	object, err := r.in(resource).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	_, idle := idling.Since(object.GetAnnotations())
	return fmt.Sprint(replicas, idle)
}

func TestIsBefore(t *testing.T) {
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, test := range []struct {
		event, since string
		precise      bool
		want         bool
	}{
		{"2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z", false, false},
		{"2026-01-01T11:59:59Z", "2026-01-01T12:00:00Z", false, true},
		{"2026-01-01T12:00:00Z", "2026-01-01T12:00:00.5Z", false, false},
		{"2026-01-01T12:00:00.4Z", "2026-01-01T12:00:00.5Z", true, true},
		{"2026-01-01T12:00:00.6Z", "2026-01-01T12:00:00.5Z", true, false},
		{"2026-01-01T12:00:00.6Z", "2026-01-01T12:00:00Z", true, false},
	} {
		event := &corev1.Event{LastTimestamp: metav1.NewTime(at(test.event).Truncate(time.Second))}
		if test.precise {
			event.EventTime = metav1.NewMicroTime(at(test.event))
		}
		if got := isBefore(event, at(test.since)); got != test.want {
			t.Errorf("event of %s, idle since %s: %v", test.event, test.since, got)
		}
	}
}

func TestReconcile(t *testing.T) {
	targets, err := json.Marshal([]idling.Target{
		{Kind: "ReplicationController", Name: "slept", Replicas: 9}, {Kind: "ReplicationController", Name: "never-idle", Replicas: 9},
		{Kind: "ReplicationController", Name: "gone"}, {Kind: "Node", Name: "node"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		event string
		want  map[string]string
	}{
		"needed": {idledAt, map[string]string{
			"services/web": "0 false", "endpoints/web": "0 false", "services/also": "0 false", "services/other": "0 true",
			"replicationcontrollers/slept": "3 false", "replicationcontrollers/never-idle": "0 false",
		}},
		"needed before it became idle": {"2026-01-01T11:59:59Z", map[string]string{
			"services/web": "0 true", "endpoints/web": "0 true", "replicationcontrollers/slept": "0 true",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config := apitest.Start(t).Config()
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			r := reader{t, client}
			mark := map[string]any{idling.IdledAt: idledAt, idling.Targets: string(targets)}
			r.add("services", "Service", "web", mark, 0)
			r.add("services", "Service", "also", mark, 0)
			r.add("services", "Service", "other", map[string]any{idling.IdledAt: idledAt, idling.Targets: `[{"kind": "ReplicationController", "name": "else"}]`}, 0)
			r.add("endpoints", "Endpoints", "web", mark, 0)
			r.add("replicationcontrollers", "ReplicationController", "slept", map[string]any{idling.IdledAt: idledAt, idling.PreviousScale: "3"}, 0)
			r.add("replicationcontrollers", "ReplicationController", "never-idle", nil, 0)
			at, err := time.Parse(time.RFC3339, tt.event)
			if err != nil {
				t.Fatal(err)
			}
			events := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			event := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, LastTimestamp: metav1.NewTime(at),
				InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "web"},
			}
			if err := events.Add(event); err != nil {
				t.Fatal(err)
			}
			l := &loop{client, corelisters.NewEventLister(events)}
			for _, key := range serviceKeys(event) {
				if err := l.reconcile(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			for object, want := range tt.want {
				resource, name, _ := strings.Cut(object, "/")
				if got := r.state(resource, name); got != want {
					t.Errorf("%s: got %s, want %s", object, got, want)
				}
			}
		})
	}
}

// conflictTransport is a transport that returns a conflict for the first endpoints update.
type conflictTransport struct {
	http.RoundTripper
	refused bool
}

func (r *conflictTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPatch || !strings.Contains(request.URL.Path, "/endpoints/") || r.refused {
		return r.RoundTripper.RoundTrip(request)
	}
	r.refused = true
	return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{}, Body: http.NoBody, Request: request}, nil
}

func TestEndpointsConflictIsRetried(t *testing.T) {
	config, rejection := apitest.Start(t).Config(), &conflictTransport{}
	r := reader{t, dynamic.NewForConfigOrDie(config)}
	mark := map[string]any{idling.IdledAt: idledAt, idling.Targets: `[]`}
	r.add("services", "Service", "web", mark, 0)
	r.add("endpoints", "Endpoints", "web", mark, 0)
	busy := rest.CopyConfig(config)
	busy.Wrap(func(next http.RoundTripper) http.RoundTripper { rejection.RoundTripper = next; return rejection })
	l := &loop{objects: dynamic.NewForConfigOrDie(busy)}
	if err := l.removeMarks(t.Context(), "shop", nil); err == nil || !rejection.refused {
		t.Fatal("the change caused no conflict")
	}
	if got := r.state("services", "web"); got != "0 true" {
		t.Errorf("got service %q, so its endpoints will not be updated", got)
	}
	if err := l.removeMarks(t.Context(), "shop", nil); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"services", "endpoints"} {
		if got := r.state(resource, "web"); got != "0 false" {
			t.Errorf("%s: got %q after the retry", resource, got)
		}
	}
}
