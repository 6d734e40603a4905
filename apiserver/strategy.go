package apiserver

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy implements the create, update and delete strategies of the generic storage for a
// Resource.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	resource Resource[T]
	reset    map[fieldpath.APIVersion]*fieldpath.Set
}

var (
	_ rest.RESTCreateStrategy  = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.RESTUpdateStrategy  = strategy[*metav1.PartialObjectMetadata]{}
	_ rest.ResetFieldsStrategy = strategy[*metav1.PartialObjectMetadata]{}
)

func newStrategy[T Object](resource Resource[T], scheme *runtime.Scheme, gv schema.GroupVersion) strategy[T] {
	if resource.ValidName == nil {
		resource.ValidName = validation.NameIsDNSSubdomain
	}
	plan := strategy[T]{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, resource: resource}
	if resource.Status {
		plan.reset = resets(gv, "status")
	}
	return plan
}

// resets returns the set of fields that an endpoint ignores, which contains only the given field.
// Field managers cannot own an ignored field through that endpoint.
func resets(gv schema.GroupVersion, field string) map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(gv.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(field)),
	}
}

func (s strategy[T]) NamespaceScoped() bool                                   { return s.resource.Namespaced }
func (s strategy[T]) AllowCreateOnUpdate(context.Context) bool                { return s.resource.CreateOnUpdate }
func (s strategy[T]) AllowUnconditionalUpdate(context.Context) bool           { return s.resource.Unconditional }
func (s strategy[T]) Canonicalize(runtime.Object)                             {}
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return s.reset }

func (s strategy[T]) PrepareForCreate(ctx context.Context, object runtime.Object) {
	created := object.(T)
	if s.resource.Status {
		fieldOf(created, "Status").SetZero()
		created.SetGeneration(1)
	}
	if s.resource.Prepare != nil {
		var none T
		s.resource.Prepare(ctx, created, none)
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, object, old runtime.Object) {
	changed, previous := object.(T), old.(T)
	if s.resource.Status {
		keepField(changed, previous, "Status")
	}
	if s.resource.Prepare != nil {
		s.resource.Prepare(ctx, changed, previous)
	}
	if s.resource.Status {
		changed.SetGeneration(previous.GetGeneration())
		if !apiequality.Semantic.DeepEqual(fieldOf(changed, "Spec").Interface(), fieldOf(previous, "Spec").Interface()) {
			changed.SetGeneration(previous.GetGeneration() + 1)
		}
	}
}

func (s strategy[T]) Validate(ctx context.Context, object runtime.Object) field.ErrorList {
	var none T
	errs := validation.ValidateObjectMetaAccessor(object.(T), s.resource.Namespaced, s.resource.ValidName,
		field.NewPath("metadata"))
	return slices.Concat(errs, s.validate(ctx, s.resource.Validate, object, none))
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(object.(T), old.(T), field.NewPath("metadata"))
	return slices.Concat(errs, s.validate(ctx, s.resource.Validate, object, old.(T)))
}

func (s strategy[T]) validate(ctx context.Context, rule func(context.Context, T, T) field.ErrorList,
	object runtime.Object, old T) field.ErrorList {
	if rule == nil {
		return nil
	}
	return rule(ctx, object.(T), old)
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, object runtime.Object) []string {
	var none T
	return s.warn(object.(T), none)
}

func (s strategy[T]) WarningsOnUpdate(_ context.Context, object, old runtime.Object) []string {
	return s.warn(object.(T), old.(T))
}

func (s strategy[T]) warn(object, old T) []string {
	if s.resource.Warn == nil {
		return nil
	}
	return s.resource.Warn(object, old)
}

// statusStrategy allows changes only to the status.
type statusStrategy[T Object] struct{ strategy[T] }

func (s statusStrategy[T]) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	keepField(object, old, "Spec")
	// A status update changes only the managed fields in the metadata.
	managers := object.(T).GetManagedFields()
	keepField(object, old, "ObjectMeta")
	object.(T).SetManagedFields(managers)
}

func (s statusStrategy[T]) ValidateUpdate(ctx context.Context, object, old runtime.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(object.(T), old.(T), field.NewPath("metadata"))
	return slices.Concat(errs, s.validate(ctx, s.resource.ValidateStatus, object, old.(T)))
}

func (s statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
