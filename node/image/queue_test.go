package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

func (r *pullRequest) isAdmitted() bool {
	select {
	case <-r.admitted:
		return true
	default:
		return false
	}
}

func TestNamespaceCannotUseAllPulls(t *testing.T) {
	q := newQueue(maxPulls, maxNamespacePulls)
	var evil []*pullRequest
	for i := range 2 * maxPulls {
		evil = append(evil, q.add("evil", fmt.Sprintf("evil-%d", i)))
	}
	for i := range 2 * maxPulls { // more namespaces than concurrent pulls
		namespace := fmt.Sprintf("shop-%d", i)
		if !q.add(namespace, namespace).isAdmitted() {
			t.Errorf("the only pull of namespace %s waits", namespace)
		}
		if second := q.add(namespace, namespace+"-second"); i >= maxPulls && second.isAdmitted() {
			t.Errorf("namespace %s starts a second pull above the limit of the node", namespace)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(evil), func(r *pullRequest) bool { return !r.isAdmitted() })); n != maxNamespacePulls {
		t.Errorf("a namespace has %d pulls, want %d", n, maxNamespacePulls)
	}
	for _, request := range evil {
		q.release(request)
	}
	if q.running["evil"] != 0 {
		t.Errorf("ended pulls are still counted: %+v", q.running)
	}
}

func TestPullsOfSameImageRunOneAfterAnother(t *testing.T) {
	q := newQueue(maxPulls, maxNamespacePulls)
	first, err := q.wait(t.Context(), "shop", "app")
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	results := make(chan error, 2)
	start := func(ctx context.Context, name string) {
		release, err := q.wait(ctx, "shop", "app")
		if err == nil {
			order <- name
			release()
		}
		results <- err
	}
	go start(t.Context(), "second")
	go start(ctx, "canceled")
	cancel(errors.New("the pod is deleted"))
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request: %v", err)
	}
	if !q.add("other", "app").isAdmitted() {
		t.Error("a namespace waits for the pull of another")
	}
	select {
	case name := <-order:
		t.Errorf("%s starts at the same time as the first pull", name)
	default:
	}
	first()
	if err := <-results; err != nil {
		t.Error(err)
	}
	if got := []string{<-order}; !slices.Equal(got, []string{"second"}) {
		t.Errorf("pulls after the first: %v", got)
	}
	q.release(&pullRequest{namespacedImage{"other", "app"}, nil})
	if q.total != 0 || len(q.running) != 0 || len(q.images) != 0 || len(q.requests) != 0 {
		t.Errorf("the queue is not empty: %+v", q)
	}
}

func TestNamespaceUnpacksOneLayerAtATime(t *testing.T) {
	q := newQueue(2, 1)
	requests := []*pullRequest{q.add("evil", ""), q.add("evil", ""), q.add("shop", ""), q.add("other", "")}
	want := func(admitted ...bool) {
		t.Helper()
		for i, request := range requests {
			if request.isAdmitted() != admitted[i] {
				t.Errorf("request %d: admitted %t, want %t", i, request.isAdmitted(), admitted[i])
			}
		}
	}
	want(true, false, true, true) // a namespace never waits for others
	q.release(requests[0])
	want(true, true, true, true)
}
