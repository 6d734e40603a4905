package ansible

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/catalog/ansible/v1alpha1"
	"github.com/slipway-platform/slipway/internal/osbserver"
)

// group returns the API group that serves the records in the broker's namespace as read-only
// objects.
func group(options Options) apiserver.Group {
	return apiserver.Group{
		GroupVersion: v1alpha1.GroupVersion(), Install: v1alpha1.Install, Definitions: v1alpha1.GetOpenAPIDefinitions,
		Resources: []apiserver.Served{
			apiserver.Virtual{Plural: "bundles", New: func(deps apiserver.Deps) (rest.Storage, error) {
				b, err := newBroker(deps, options)
				return newView("bundles", b.bundleFeed(), func(items []v1alpha1.Bundle) runtime.Object { return &v1alpha1.BundleList{Items: items} },
					apiserver.Column[*v1alpha1.Bundle]{Name: "Bundle", Description: "Name of the service", Value: func(o *v1alpha1.Bundle) any { return o.Spec.FQName }},
					apiserver.Column[*v1alpha1.Bundle]{Name: "Image", Description: "Reference of the image", Value: func(o *v1alpha1.Bundle) any { return o.Spec.Image }},
				), err
			}},
			apiserver.Virtual{Plural: "bundleinstances", New: func(deps apiserver.Deps) (rest.Storage, error) {
				b, err := newBroker(deps, options)
				type instance = *v1alpha1.BundleInstance
				return newView("bundleinstances", recordFeed(b, instanceObjects), func(items []v1alpha1.BundleInstance) runtime.Object {
					return &v1alpha1.BundleInstanceList{Items: items}
				},
					apiserver.Column[instance]{Name: "Project", Description: "Project of the instance", Value: func(o instance) any { return o.Spec.Context.Namespace }},
					apiserver.Column[instance]{Name: "State", Description: "State of the last operation", Value: func(o instance) any { return string(o.Status.State) }},
					apiserver.Age[instance](),
				), err
			}},
			apiserver.Virtual{Plural: "bundlebindings", New: func(deps apiserver.Deps) (rest.Storage, error) {
				b, err := newBroker(deps, options)
				type binding = *v1alpha1.BundleBinding
				return newView("bundlebindings", recordFeed(b, bindingObjects), func(items []v1alpha1.BundleBinding) runtime.Object {
					return &v1alpha1.BundleBindingList{Items: items}
				},
					apiserver.Column[binding]{Name: "Instance", Description: "Instance that is bound", Value: func(o binding) any { return o.Spec.BundleInstance.Name }},
					apiserver.Column[binding]{Name: "State", Description: "State of the binding", Value: func(o binding) any { return string(o.Status.State) }},
				), err
			}},
		},
	}
}

// object is a pointer to a wire type T.
type object[T any] interface {
	*T
	apiserver.Object
}

// view serves objects of one kind. It derives them from the objects in its feed.
type view[T any, P object[T]] struct {
	apiserver.Unstored[P]
	rest.TableConvertor
	plural string
	feed   feed[T]
	list   func([]T) runtime.Object
}

func newView[T any, P object[T]](plural string, f feed[T], list func([]T) runtime.Object, columns ...apiserver.Column[P]) rest.Storage {
	return &view[T, P]{
		Unstored:       apiserver.Unstored[P]{Singular: strings.TrimSuffix(plural, "s"), Namespaced: true},
		TableConvertor: apiserver.Table(columns), plural: plural, feed: f, list: list,
	}
}

// NewList creates an empty list.
func (v *view[T, P]) NewList() runtime.Object { return v.list(nil) }

// Get returns an object.
func (v *view[T, P]) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	items, _, err := v.items(ctx, &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range items {
		if P(&items[i]).GetName() == name {
			return P(&items[i]), nil
		}
	}
	return nil, apierrors.NewNotFound(v1alpha1.GroupVersion().WithResource(v.plural).GroupResource(), name)
}

// List returns the objects that the options select.
func (v *view[T, P]) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	items, version, err := v.items(ctx, options)
	if err != nil {
		return nil, err
	}
	list := v.list(items)
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(version)
	return list, nil
}

// items returns the objects that the options select, and the resource version of the list.
func (v *view[T, P]) items(ctx context.Context, options *internalversion.ListOptions) (items []T, version string, err error) {
	follower, err := v.follow(ctx, "", options)
	if err != nil {
		return nil, "", err
	}
	for _, objects := range follower.derived {
		items = append(items, objects...)
	}
	slices.SortFunc(items, func(a, b T) int { return strings.Compare(P(&a).GetName(), P(&b).GetName()) })
	return items, follower.version, nil
}

// hasObjects reports whether the request's project can contain objects. All objects are in the
// broker's namespace.
func hasObjects(ctx context.Context) bool {
	project := apirequest.NamespaceValue(ctx)
	return project == "" || project == namespace
}

// selected returns the objects that are derived from a stored object and that match both the
// request's project and the options.
func (v *view[T, P]) selected(ctx context.Context, stored runtime.Object, options *internalversion.ListOptions) ([]T, error) {
	if !hasObjects(ctx) {
		return nil, nil
	}
	accessor, err := meta.Accessor(stored)
	if err != nil {
		return nil, err
	}
	items, err := v.feed.derive(ctx, stored)
	for i := range items {
		P(&items[i]).SetResourceVersion(accessor.GetResourceVersion())
	}
	return slices.DeleteFunc(items, func(item T) bool {
		o := P(&item)
		return options != nil && (options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) ||
			options.FieldSelector != nil && !options.FieldSelector.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": namespace}))
	}), err
}

// bundleFeed returns the feed of the bundles. If several projects have bundles, the feed watches
// all projects, because only a single watch returns events in the order of their versions.
// Otherwise, a client that resumes a watch would miss changes.
func (b *broker) bundleFeed() feed[v1alpha1.Bundle] {
	project := namespace
	for i, o := range b.origins {
		switch {
		case i == 0:
			project = o.namespace
		case o.namespace != project:
			project = metav1.NamespaceAll
		}
	}
	streams := b.images.ImageStreams(project)
	return feed[v1alpha1.Bundle]{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return streams.List(ctx, options)
		},
		watch: streams.Watch,
		derive: func(ctx context.Context, stored runtime.Object) ([]v1alpha1.Bundle, error) {
			stream := stored.(*imagev1.ImageStream)
			if !b.offersStream(stream) {
				return nil, nil
			}
			result, err := b.readStream(ctx, stream)
			if err != nil || result.bundle == nil {
				return nil, err
			}
			return []v1alpha1.Bundle{bundleObject(result.bundle)}, nil
		},
		identify: func(stored runtime.Object) string {
			stream := stored.(*imagev1.ImageStream)
			if !b.offersStream(stream) {
				return ""
			}
			return (&bundle{Namespace: stream.Namespace, Stream: stream.Name}).id()
		},
	}
}

func bundleObject(b *bundle) v1alpha1.Bundle {
	spec := &b.Spec
	o := v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.id()}, Spec: v1alpha1.BundleSpec{
		Runtime: spec.Runtime, Version: spec.Version, FQName: spec.Name, Image: b.Image, Tags: spec.Tags, Bindable: spec.Bindable,
		Description: spec.Description, Metadata: encoded(spec.Metadata), Async: spec.Async,
	}}
	for _, p := range spec.Plans {
		o.Spec.Plans = append(o.Spec.Plans, v1alpha1.Plan{
			ID: b.planID(p.Name), Name: p.Name, Description: p.Description, Metadata: encoded(p.Metadata), Free: p.Free, Bindable: spec.Bindable,
			UpdatesTo: p.UpdatesTo, Parameters: parameterObjects(p.Parameters), BindParameters: parameterObjects(p.BindParameters),
		})
	}
	return o
}

func parameterObjects(parameters []parameter) (objects []v1alpha1.Parameter) {
	for _, p := range parameters {
		objects = append(objects, v1alpha1.Parameter{
			Name: p.Name, Title: p.Title, Type: p.Type, Description: p.Description, Required: p.Required, Updatable: p.Updatable, Enum: p.Enum,
		})
	}
	return objects
}

// encoded returns an object as JSON.
func encoded(values map[string]any) string {
	content, err := json.Marshal(values)
	if err != nil || values == nil {
		return "{}"
	}
	return string(content)
}

func instanceObjects(rec *record) []v1alpha1.BundleInstance {
	o := v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rec.ID, CreationTimestamp: rec.secret.CreationTimestamp},
		Spec: v1alpha1.BundleInstanceSpec{
			Bundle:       v1alpha1.LocalObjectReference{Name: rec.Service},
			Context:      v1alpha1.Context{Platform: osbserver.Platform, Namespace: rec.Namespace},
			DashboardURL: rec.Dashboard,
		},
		Status: v1alpha1.BundleInstanceStatus{Bindings: []v1alpha1.LocalObjectReference{}, State: v1alpha1.Succeeded},
	}
	for _, id := range slices.Sorted(maps.Keys(rec.Bindings)) {
		o.Status.Bindings = append(o.Status.Bindings, v1alpha1.LocalObjectReference{Name: id})
	}
	if op := rec.Operation; op != nil {
		state := v1alpha1.State(op.State)
		o.Status.State, o.Status.LastDescription = state, op.Description
		o.Status.Jobs = map[string]v1alpha1.Job{op.Name: {PodName: op.Name, State: state, Description: op.Description, Method: op.Action}}
	}
	return []v1alpha1.BundleInstance{o}
}

func bindingObjects(rec *record) (items []v1alpha1.BundleBinding) {
	for id, binding := range rec.Bindings {
		o := v1alpha1.BundleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id},
			Spec:       v1alpha1.BundleBindingSpec{BundleInstance: v1alpha1.LocalObjectReference{Name: rec.ID}},
			Status:     v1alpha1.BundleBindingStatus{State: v1alpha1.Succeeded},
		}
		if binding.Failure != "" {
			o.Status.State, o.Status.LastDescription = v1alpha1.Failed, binding.Failure
		}
		items = append(items, o)
	}
	return items
}
