package apiserver

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// Object is a pointer to a wire type with metadata, such as *routev1.Route.
type Object interface {
	runtime.Object
	metav1.Object
}

// Served is implemented by Resource and Virtual.
type Served interface {
	register(*runtime.Scheme, schema.GroupVersion) error
	storage(Deps, schema.GroupVersion) (map[string]rest.Storage, error)
}

// Resource is a stored resource. All verbs, patches, server-side apply, watch, selectors and tables
// are derived from its fields. Its functions receive private copies of objects and can be nil.
type Resource[T Object] struct {
	// Plural is the resource's name in paths, for example "routes". Singular defaults to the kind
	// in lower case.
	Plural, Singular string
	// ShortNames and Categories are alternative names for clients; "all" is a category.
	ShortNames, Categories []string
	// Namespaced means that each object is in a namespace.
	Namespaced bool
	// ValidName returns the reasons why a name is invalid. By default, names must be DNS
	// subdomains. ValidPathSegment accepts more names.
	ValidName validation.ValidateNameFunc
	// Default sets default values when the server decodes a request and when it reads a stored
	// object. It must be idempotent.
	Default func(T)
	// Prepare changes an object before validation. old is nil on creation.
	Prepare func(ctx context.Context, object, old T)
	// Validate validates everything except the metadata. old is nil on creation.
	Validate func(ctx context.Context, object, old T) field.ErrorList
	// ValidateStatus validates a status change.
	ValidateStatus func(ctx context.Context, object, old T) field.ErrorList
	// Warn returns warnings for the client. old is nil on creation.
	Warn func(object, old T) []string
	// Fields defines the field selectors in addition to metadata.name and metadata.namespace. It
	// maps their names to functions that return a field's value.
	Fields map[string]func(T) string
	// Columns lists the columns of the table that follow the name column.
	Columns []Column[T]
	// Status means that the resource has a "status" subresource. Only requests to this subresource
	// change the Status field. The objects have a generation, which is incremented by each change to
	// the Spec field.
	Status bool
	// CreateOnUpdate allows PUT to create an object. Unconditional allows PUT to replace an object
	// without a resourceVersion.
	CreateOnUpdate, Unconditional bool
	// Adjust sets store options for which Resource has no field. It is optional.
	Adjust func(Deps, *registry.Store)
	// Wrap returns the storage that serves requests instead of the store, for example to resolve
	// names that are not names of objects. The storage must embed the Store. Wrap is optional.
	Wrap func(Deps, *Store) rest.Storage
	// Subresources returns additional subresources by name, for example "scale". It is optional.
	Subresources func(Deps, *registry.Store) (map[string]rest.Storage, error)
}

// Virtual is a resource that is not stored: a view or an action. It can also be a subresource, with
// the name "resource/sub". The methods of the storage that New returns determine its verbs.
type Virtual struct {
	Plural string
	New    func(Deps) (rest.Storage, error)
}

func (v Virtual) register(*runtime.Scheme, schema.GroupVersion) error { return nil }

func (v Virtual) storage(deps Deps, _ schema.GroupVersion) (map[string]rest.Storage, error) {
	storage, err := v.New(deps)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", v.Plural, err)
	}
	return map[string]rest.Storage{v.Plural: storage}, nil
}

// kind returns the name of the wire type, for example "Route".
func (r Resource[T]) kind() string { return reflect.TypeFor[T]().Elem().Name() }

// register registers the defaults, for objects and lists, and the field selectors.
func (r Resource[T]) register(scheme *runtime.Scheme, gv schema.GroupVersion) error {
	if r.Default != nil {
		list, err := scheme.New(gv.WithKind(r.kind() + "List"))
		if err != nil {
			return fmt.Errorf("find list of %s: %w", r.Plural, err)
		}
		scheme.AddTypeDefaultingFunc(newObject[T](), func(object any) { r.Default(object.(T)) })
		scheme.AddTypeDefaultingFunc(list, func(list any) { eachItem(list.(runtime.Object), r.Default) })
	}
	if r.Fields == nil {
		return nil
	}
	for _, version := range []schema.GroupVersion{gv, legacyVersion} {
		if err := scheme.AddFieldLabelConversionFunc(version.WithKind(r.kind()), r.fieldLabel); err != nil {
			return fmt.Errorf("register field selectors of %s: %w", r.Plural, err)
		}
	}
	return nil
}

// fieldLabel rejects unknown field selectors.
func (r Resource[T]) fieldLabel(label, value string) (string, string, error) {
	if _, ok := r.Fields[label]; ok || label == "metadata.name" || label == "metadata.namespace" {
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// storage returns the storage of the resource and of its subresources, by path.
func (r Resource[T]) storage(deps Deps, gv schema.GroupVersion) (map[string]rest.Storage, error) {
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.kind())
	}
	plan := newStrategy(r, deps.Scheme, gv)
	resource := schema.GroupResource{Group: gv.Group, Resource: r.Plural}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return newObject[T]() },
		NewListFunc:               func() runtime.Object { return newList(deps.Scheme, gv.WithKind(r.kind()+"List")) },
		PredicateFunc:             r.predicate,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: gv.Group, Resource: r.Singular},
		CreateStrategy:            plan,
		UpdateStrategy:            plan,
		DeleteStrategy:            plan,
		ResetFieldsStrategy:       plan,
		TableConvertor:            Table(r.Columns),
	}
	if r.Adjust != nil {
		r.Adjust(deps, store)
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: deps.Getter, AttrFunc: r.attributes}); err != nil {
		return nil, fmt.Errorf("store %s: %w", resource, err)
	}
	deps.Stores[resource] = store
	own := &Store{store, accepted(gv), r.ShortNames, r.Categories}
	served := map[string]rest.Storage{r.Plural: own}
	if r.Wrap != nil {
		served[r.Plural] = r.Wrap(deps, own)
	}
	if r.Status {
		status := newStatus(store, plan, gv)
		served[r.Plural+"/status"] = status
		deps.Stores[schema.GroupResource{Group: gv.Group, Resource: r.Plural + "/status"}] = status.store
	}
	if r.Subresources == nil {
		return served, nil
	}
	more, err := r.Subresources(deps, store)
	if err != nil {
		return nil, fmt.Errorf("create subresources of %s: %w", resource, err)
	}
	for name, storage := range more {
		served[r.Plural+"/"+name] = storage
	}
	return served, nil
}

func (r Resource[T]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: r.attributes}
}

// attributes returns the labels and fields that selectors match.
func (r Resource[T]) attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, nil, fmt.Errorf("select %T: not a %s", object, r.kind())
	}
	set := make(fields.Set, len(r.Fields)+2)
	set["metadata.name"] = typed.GetName()
	if r.Namespaced {
		set["metadata.namespace"] = typed.GetNamespace()
	}
	for name, value := range r.Fields {
		set[name] = value(typed)
	}
	return typed.GetLabels(), set, nil
}

// Store is a store that also provides the resource's alternative names.
type Store struct {
	*registry.Store
	accepted
	shortNames, categories []string
}

// accepted is the group version of the request bodies that a resource accepts. The resource also
// accepts bodies in the version without a group.
type accepted schema.GroupVersion

// AcceptsGroupVersion reports whether clients can send an object in the given version.
func (a accepted) AcceptsGroupVersion(gv schema.GroupVersion) bool {
	return gv == schema.GroupVersion(a) || gv == legacyVersion
}

// ShortNames returns abbreviations, such as "is".
func (s *Store) ShortNames() []string { return s.shortNames }

// Categories returns the names of resource sets, such as "all".
func (s *Store) Categories() []string { return s.categories }

// ValidPathSegment returns the reasons why a name cannot be a path segment. If prefix is set, the
// server appends random characters to the name.
func ValidPathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
