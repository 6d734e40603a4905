package authorization

import (
	"context"
	"errors"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// client is the common interface of the typed RBAC clients.
type client[R, L any] interface {
	Create(context.Context, R, metav1.CreateOptions) (R, error)
	Update(context.Context, R, metav1.UpdateOptions) (R, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (R, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// view serves an RBAC resource (type R, list type L) as an OpenShift resource (type O). It sends
// every request to the RBAC API as the request's user. Therefore, the API's checks apply: users
// cannot grant permissions that they do not have.
type view[O apiserver.Object, R apiserver.Object, L runtime.Object] struct {
	rest.TableConvertor
	loopback   *clientrest.Config
	kind       string
	singular   string
	namespaced bool
	open       func(rbacclient.RbacV1Interface, string) client[R, L]
	from       func(R) O
	to         func(O) (R, field.ErrorList)
	list       func(L) runtime.Object
	empty      func() (object, list runtime.Object)
}

// New creates an empty object.
func (v *view[O, R, L]) New() runtime.Object { object, _ := v.empty(); return object }

// NewList creates an empty list.
func (v *view[O, R, L]) NewList() runtime.Object { _, list := v.empty(); return list }

// Destroy is a no-op.
func (v *view[O, R, L]) Destroy() {}

// NamespaceScoped reports whether the resource is namespaced.
func (v *view[O, R, L]) NamespaceScoped() bool { return v.namespaced }

// GetSingularName returns the singular name.
func (v *view[O, R, L]) GetSingularName() string { return v.singular }

// client returns a client that impersonates the request's user.
func (v *view[O, R, L]) client(ctx context.Context) (client[R, L], error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("the request has no user")
	}
	config := clientrest.CopyConfig(v.loopback)
	config.QPS = -1
	config.Impersonate = clientrest.ImpersonationConfig{
		UserName: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra(),
	}
	rbac, err := rbacclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return v.open(rbac, request.NamespaceValue(ctx)), nil
}

// Get returns an RBAC object in OpenShift's format.
func (v *view[O, R, L]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, err
	}
	object, err := rbac.Get(ctx, name, *options)
	if err != nil {
		return nil, err
	}
	return v.from(object), nil
}

// List returns the RBAC objects that options select, in OpenShift's format.
func (v *view[O, R, L]) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, err
	}
	selected, err := external(options)
	if err != nil {
		return nil, err
	}
	list, err := rbac.List(ctx, selected)
	if err != nil {
		return nil, err
	}
	return v.list(list), nil
}

// external converts the options of a request to client options.
func external(options *internalversion.ListOptions) (metav1.ListOptions, error) {
	var converted metav1.ListOptions
	if options == nil {
		return converted, nil
	}
	return converted, internalversion.Convert_internalversion_ListOptions_To_v1_ListOptions(options, &converted, nil)
}

// Watch returns a stream of change events.
func (v *view[O, R, L]) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, err
	}
	selected, err := external(options)
	if err != nil {
		return nil, err
	}
	events, err := rbac.Watch(ctx, selected)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if changed, ok := event.Object.(R); ok {
			event.Object = v.from(changed)
		}
		return event, true
	}), nil
}

// Create creates the RBAC object that corresponds to an OpenShift object.
func (v *view[O, R, L]) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	typed := object.(O)
	if v.namespaced {
		typed.SetNamespace(request.NamespaceValue(ctx))
	}
	desired, err := v.convert(typed)
	if err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, err
	}
	created, err := rbac.Create(ctx, desired, *options)
	if err != nil {
		return nil, err
	}
	return v.from(created), nil
}

func (v *view[O, R, L]) convert(object O) (R, error) {
	converted, errs := v.to(object)
	if len(errs) > 0 {
		return converted, apierrors.NewInvalid(authorizationv1.GroupVersion.WithKind(v.kind).GroupKind(), object.GetName(), errs)
	}
	return converted, nil
}

// Update updates the RBAC object that corresponds to an OpenShift object.
func (v *view[O, R, L]) Update(ctx context.Context, name string, updated rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, false, err
	}
	existing, err := rbac.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	old := v.from(existing)
	object, err := updated.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	desired, err := v.convert(object.(O))
	if err != nil {
		return nil, false, err
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject(), v.from(existing)); err != nil {
			return nil, false, err
		}
	}
	changed, err := rbac.Update(ctx, desired, *options)
	if err != nil {
		return nil, false, err
	}
	return v.from(changed), false, nil
}

// Delete deletes the RBAC object with the same name.
func (v *view[O, R, L]) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	rbac, err := v.client(ctx)
	if err != nil {
		return nil, false, err
	}
	if validate != nil {
		existing, err := rbac.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, false, err
		}
		if err := validate(ctx, v.from(existing)); err != nil {
			return nil, false, err
		}
	}
	if err := rbac.Delete(ctx, name, *options); err != nil {
		return nil, false, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, true, nil
}
