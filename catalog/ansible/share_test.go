package ansible

import (
	"net/http"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

func TestConcurrentOperationsOfProjectAreLimited(t *testing.T) {
	b := &broker{kube: fake.NewClientset()}
	instance := func(id, project, state string) *record {
		return &record{ID: id, Namespace: project, Operation: &operation{State: state}}
	}
	stored := []*record{
		instance("a", "shop", inProgress), instance("b", "shop", succeeded), instance("c", "other", inProgress), instance("d", "shop", inProgress),
	}
	for _, rec := range stored {
		if err := b.store(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	own := stored[0]
	if err := b.checkShare(t.Context(), own); err != nil {
		t.Errorf("the next operation of an instance: %v", err)
	}
	if err := b.checkShare(t.Context(), instance("e", "other", "")); err != nil {
		t.Errorf("another project: %v", err)
	}
	err := b.checkShare(t.Context(), instance("e", "shop", ""))
	if code, kind := osbserver.Code(err); code != http.StatusUnprocessableEntity || kind != "ConcurrencyError" {
		t.Errorf("a third instance: %v, %d %s", err, code, kind)
	}
	own.Operation.State = failed
	if err := b.store(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if err := b.checkShare(t.Context(), instance("e", "shop", "")); err != nil {
		t.Errorf("after the end of an operation: %v", err)
	}
}
