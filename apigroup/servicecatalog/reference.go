package servicecatalog

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// reference is the subresource of instances that changes only the class and plan references.
type reference struct{ store *registry.Store }

var _ rest.Patcher = &reference{}

func newReference(store *registry.Store) *reference {
	own := *store
	own.CreateStrategy, own.DeleteStrategy = nil, nil
	own.UpdateStrategy = referenceStrategy{store.UpdateStrategy}
	return &reference{&own}
}

// New creates an empty instance.
func (r *reference) New() runtime.Object { return r.store.New() }

// Destroy is a no-op, because the main resource owns the shared connection.
func (r *reference) Destroy() {}

// Get reads the instance.
func (r *reference) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the references. It never creates an instance.
func (r *reference) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, object, rest.ValidateAllObjectFunc, validate, false, options)
}

// ConvertToTable returns the same table as the main resource.
func (r *reference) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}

// referenceStrategy allows changes only to the references.
type referenceStrategy struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate reverts every other change.
func (referenceStrategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	changed, next := object.(*v1beta1.ServiceInstance), old.(*v1beta1.ServiceInstance).DeepCopy()
	next.Spec.ClusterServiceClassRef, next.Spec.ClusterServicePlanRef = changed.Spec.ClusterServiceClassRef, changed.Spec.ClusterServicePlanRef
	next.Spec.ServiceClassRef, next.Spec.ServicePlanRef = changed.Spec.ServiceClassRef, changed.Spec.ServicePlanRef
	next.ManagedFields = changed.ManagedFields
	*changed = *next
}

// ValidateUpdate accepts every reference. Only the catalog controller, which resolves the
// references, has permission to use the subresource.
func (referenceStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnUpdate returns no warnings.
func (referenceStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
