package user

import (
	"context"
	"fmt"
	"slices"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// mappings is the resource useridentitymappings.user.openshift.io: a view of an Identity and its User, which both name each other. It
// stores nothing itself. An identity has one user, a user many identities.
func mappings() apiserver.Served {
	return apiserver.Virtual{Plural: "useridentitymappings", New: func(deps apiserver.Deps) (rest.Storage, error) {
		return &mapping{stores: deps.Stores, table: apiserver.Table([]apiserver.Column[*userv1.UserIdentityMapping]{
			{Name: "User Name", Description: "User of the identity", Value: func(m *userv1.UserIdentityMapping) any { return m.User.Name }},
		})}, nil
	}}
}

type mapping struct {
	stores map[schema.GroupResource]*registry.Store
	table  rest.TableConvertor
}

var (
	_ rest.Getter               = &mapping{}
	_ rest.CreaterUpdater       = &mapping{}
	_ rest.GracefulDeleter      = &mapping{}
	_ rest.Scoper               = &mapping{}
	_ rest.SingularNameProvider = &mapping{}
)

// New makes an empty object.
func (m *mapping) New() runtime.Object { return &userv1.UserIdentityMapping{} }

// Destroy has nothing to close.
func (m *mapping) Destroy() {}

// NamespaceScoped says that mappings live in no namespace.
func (m *mapping) NamespaceScoped() bool { return false }

// GetSingularName is the name of one.
func (m *mapping) GetSingularName() string { return "useridentitymapping" }

// ConvertToTable prints mappings.
func (m *mapping) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return m.table.ConvertToTable(ctx, object, options)
}

// read gives the object of one of the two stores.
func read[T runtime.Object](ctx context.Context, m *mapping, resource, name string) (T, error) {
	object, err := m.stores[userv1.Resource(resource)].Get(ctx, name, &metav1.GetOptions{})
	typed, _ := object.(T)
	return typed, err
}

// write stores a changed object, unless someone else has changed it since.
func write[T metav1.Object](ctx context.Context, m *mapping, resource string, object T) error {
	changed, ok := any(object).(runtime.Object)
	if !ok {
		return fmt.Errorf("store %s: %T is no object", resource, object)
	}
	_, _, err := m.stores[userv1.Resource(resource)].Update(ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(changed),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// pair reads an identity with its user. One that is not mapped both ways is not found.
func (m *mapping) pair(ctx context.Context, name string) (*userv1.Identity, *userv1.User, error) {
	none := kerrors.NewNotFound(userv1.Resource("useridentitymappings"), name)
	identity, err := read[*userv1.Identity](ctx, m, "identities", name)
	if kerrors.IsNotFound(err) || err == nil && identity.User.Name == "" {
		return nil, nil, none
	}
	if err != nil {
		return nil, nil, err
	}
	user, err := read[*userv1.User](ctx, m, "users", identity.User.Name)
	if kerrors.IsNotFound(err) || err == nil && (user.UID != identity.User.UID || !slices.Contains(user.Identities, identity.Name)) {
		return nil, nil, none
	}
	return identity, user, err
}

// view is the mapping of an identity and its user. Its version is both of theirs.
func view(identity *userv1.Identity, user *userv1.User) *userv1.UserIdentityMapping {
	return &userv1.UserIdentityMapping{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.Name, UID: identity.UID, ResourceVersion: identity.ResourceVersion, CreationTimestamp: identity.CreationTimestamp,
		},
		Identity: corev1.ObjectReference{Name: identity.Name, UID: identity.UID},
		User:     corev1.ObjectReference{Name: user.Name, UID: user.UID},
	}
}

// Get shows the mapping of an identity.
func (m *mapping) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	identity, user, err := m.pair(ctx, name)
	if err != nil {
		return nil, err
	}
	return view(identity, user), nil
}

// Create maps an identity that has no user.
func (m *mapping) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	wanted := object.(*userv1.UserIdentityMapping)
	identity, user, err := m.ends(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if _, _, err := m.pair(ctx, identity.Name); err == nil {
		return nil, kerrors.NewAlreadyExists(userv1.Resource("useridentitymappings"), identity.Name)
	} else if !kerrors.IsNotFound(err) {
		return nil, err
	}
	return m.apply(ctx, identity, user, options.DryRun, func() error { return validate(ctx, object) })
}

// Update gives an identity to another user.
func (m *mapping) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	before, former, err := m.pair(ctx, name)
	if err != nil {
		return nil, false, err
	}
	old := view(before, former)
	object, err := info.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	wanted := object.(*userv1.UserIdentityMapping)
	if version := wanted.ResourceVersion; version != "" && version != old.ResourceVersion {
		return nil, false, kerrors.NewConflict(userv1.Resource("useridentitymappings"), name, fmt.Errorf("the mapping was changed in between"))
	}
	if wanted.User.Name == former.Name {
		return old, false, nil
	}
	identity, user, err := m.ends(ctx, wanted)
	if err != nil {
		return nil, false, err
	}
	changed, err := m.apply(ctx, identity, user, options.DryRun, func() error { return validate(ctx, object, old) })
	if err != nil || len(options.DryRun) > 0 {
		return changed, false, err
	}
	return changed, false, m.forget(ctx, former.Name, identity.Name)
}

// Delete leaves an identity without a user, who cannot log in by it then.
func (m *mapping) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	identity, user, err := m.pair(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if err := validate(ctx, view(identity, user)); err != nil {
		return nil, false, err
	}
	done := &metav1.Status{Status: metav1.StatusSuccess}
	if options != nil && len(options.DryRun) > 0 {
		return done, true, nil
	}
	identity.User = corev1.ObjectReference{}
	if err := write(ctx, m, "identities", identity); err != nil {
		return nil, false, err
	}
	return done, true, m.forget(ctx, user.Name, name)
}

// ends finds the identity and the user that a mapping names.
func (m *mapping) ends(ctx context.Context, wanted *userv1.UserIdentityMapping) (*userv1.Identity, *userv1.User, error) {
	var errs field.ErrorList
	identity, err := read[*userv1.Identity](ctx, m, "identities", wanted.Identity.Name)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil || wanted.Identity.Name == "" {
		errs = append(errs, field.Invalid(field.NewPath("identity", "name"), wanted.Identity.Name, "referenced identity does not exist"))
	}
	user, err := read[*userv1.User](ctx, m, "users", wanted.User.Name)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil || wanted.User.Name == "" {
		errs = append(errs, field.Invalid(field.NewPath("user", "name"), wanted.User.Name, "referenced user does not exist"))
	}
	if wanted.Name != "" && wanted.Name != wanted.Identity.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), wanted.Name, "must be the name of the identity"))
	}
	if len(errs) > 0 {
		return nil, nil, kerrors.NewInvalid(userv1.GroupVersion.WithKind("UserIdentityMapping").GroupKind(), wanted.Name, errs)
	}
	return identity, user, nil
}

// apply maps an identity to a user: first the user lists the identity, which says nothing as long as the identity does not name the user.
func (m *mapping) apply(ctx context.Context, identity *userv1.Identity, user *userv1.User, dryRun []string, admit func() error) (runtime.Object, error) {
	identity.User = corev1.ObjectReference{Name: user.Name, UID: user.UID}
	if err := admit(); err != nil {
		return nil, err
	}
	if len(dryRun) > 0 {
		return view(identity, user), nil
	}
	if !slices.Contains(user.Identities, identity.Name) {
		user.Identities = append(user.Identities, identity.Name)
		if err := write(ctx, m, "users", user); err != nil {
			return nil, err
		}
	}
	if err := write(ctx, m, "identities", identity); err != nil {
		return nil, err
	}
	return m.Get(ctx, identity.Name, &metav1.GetOptions{})
}

// forget takes an identity out of a user's list; a user who is gone has none.
func (m *mapping) forget(ctx context.Context, name, identity string) error {
	user, err := read[*userv1.User](ctx, m, "users", name)
	if err != nil {
		if kerrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	user.Identities = slices.DeleteFunc(user.Identities, func(one string) bool { return one == identity })
	return write(ctx, m, "users", user)
}
