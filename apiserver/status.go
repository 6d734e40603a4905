package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// status is the "status" subresource of a store. It reads the whole object and changes only its
// status.
type status struct {
	accepted
	store *registry.Store
}

var (
	_ rest.Patcher             = &status{}
	_ rest.TableConvertor      = &status{}
	_ rest.ResetFieldsStrategy = &status{}
)

func newStatus[T Object](store *registry.Store, plan strategy[T], gv schema.GroupVersion) *status {
	plan.reset = resets(gv, "spec")
	own := *store
	own.CreateStrategy, own.DeleteStrategy = nil, nil
	own.UpdateStrategy = statusStrategy[T]{plan}
	own.ResetFieldsStrategy = statusStrategy[T]{plan}
	return &status{accepted(gv), &own}
}

// New creates an empty object.
func (s *status) New() runtime.Object { return s.store.New() }

// Destroy is a no-op, because the resource owns the shared connection.
func (s *status) Destroy() {}

// Get reads the object.
func (s *status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update changes the status. It never creates an object.
func (s *status) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, object, rest.ValidateAllObjectFunc, validate, false, options)
}

// GetResetFields returns the fields that server-side apply ignores.
func (s *status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable returns the same table as the resource.
func (s *status) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, object, options)
}
