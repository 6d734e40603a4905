package user

import (
	"context"
	"fmt"
	"slices"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// mappings returns the useridentitymappings.user.openshift.io resource. A mapping is a view of an
// Identity and its User, which refer to each other. Mappings are not stored. An identity has one
// user, and a user can have many identities.
func mappings() apiserver.Served {
	return apiserver.Virtual{Plural: "useridentitymappings", New: func(deps apiserver.Deps) (rest.Storage, error) {
		return &mapping{Unstored: apiserver.Unstored[*userv1.UserIdentityMapping]{Singular: "useridentitymapping"}, stores: deps.Stores, table: apiserver.Table([]apiserver.Column[*userv1.UserIdentityMapping]{
			{Name: "User Name", Description: "User of the identity", Value: func(m *userv1.UserIdentityMapping) any { return m.User.Name }},
		})}, nil
	}}
}

type mapping struct {
	apiserver.Unstored[*userv1.UserIdentityMapping]
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

// ConvertToTable returns a table with the columns that `oc get` prints for mappings.
func (m *mapping) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return m.table.ConvertToTable(ctx, object, options)
}

// read returns a User or an Identity from its store. resource is "users" or "identities".
func read[T runtime.Object](ctx context.Context, m *mapping, resource, name string) (T, error) {
	object, err := m.stores[userv1.Resource(resource)].Get(ctx, name, &metav1.GetOptions{})
	typed, _ := object.(T)
	return typed, err
}

// write stores a changed object. It returns an error if the object has changed since it was read.
func write[T metav1.Object](ctx context.Context, m *mapping, resource string, object T) error {
	changed, ok := any(object).(runtime.Object)
	if !ok {
		return fmt.Errorf("store %s: %T is not an object", resource, object)
	}
	_, _, err := m.stores[userv1.Resource(resource)].Update(ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(changed),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// pair returns an identity with its user. If the two objects do not refer to each other, it returns
// a NotFound error.
func (m *mapping) pair(ctx context.Context, name string) (*userv1.Identity, *userv1.User, error) {
	notFound := apierrors.NewNotFound(userv1.Resource("useridentitymappings"), name)
	identity, err := read[*userv1.Identity](ctx, m, "identities", name)
	if apierrors.IsNotFound(err) || err == nil && identity.User.Name == "" {
		return nil, nil, notFound
	}
	if err != nil {
		return nil, nil, err
	}
	user, err := read[*userv1.User](ctx, m, "users", identity.User.Name)
	if apierrors.IsNotFound(err) || err == nil && (user.UID != identity.User.UID || !slices.Contains(user.Identities, identity.Name)) {
		return nil, nil, notFound
	}
	return identity, user, err
}

// view returns the mapping of an identity and its user. The mapping has the identity's resource
// version.
func view(identity *userv1.Identity, user *userv1.User) *userv1.UserIdentityMapping {
	return &userv1.UserIdentityMapping{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.Name, UID: identity.UID, ResourceVersion: identity.ResourceVersion, CreationTimestamp: identity.CreationTimestamp,
		},
		Identity: corev1.ObjectReference{Name: identity.Name, UID: identity.UID},
		User:     corev1.ObjectReference{Name: user.Name, UID: user.UID},
	}
}

// Get returns an identity's mapping.
func (m *mapping) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	identity, user, err := m.pair(ctx, name)
	if err != nil {
		return nil, err
	}
	return view(identity, user), nil
}

// Create maps an identity without a user to a user.
func (m *mapping) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	desired := object.(*userv1.UserIdentityMapping)
	identity, user, err := m.ends(ctx, desired)
	if err != nil {
		return nil, err
	}
	if _, _, err := m.pair(ctx, identity.Name); err == nil {
		return nil, apierrors.NewAlreadyExists(userv1.Resource("useridentitymappings"), identity.Name)
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	return m.apply(ctx, identity, user, options.DryRun, func() error { return validate(ctx, object) })
}

// Update maps an identity to a different user.
func (m *mapping) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc,
	validate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	identityBefore, previous, err := m.pair(ctx, name)
	if err != nil {
		return nil, false, err
	}
	old := view(identityBefore, previous)
	object, err := info.UpdatedObject(ctx, old)
	if err != nil {
		return nil, false, err
	}
	desired := object.(*userv1.UserIdentityMapping)
	if version := desired.ResourceVersion; version != "" && version != old.ResourceVersion {
		return nil, false, apierrors.NewConflict(userv1.Resource("useridentitymappings"), name,
			fmt.Errorf("another request changed the mapping; try again"))
	}
	if desired.User.Name == previous.Name {
		return old, false, nil
	}
	identity, user, err := m.ends(ctx, desired)
	if err != nil {
		return nil, false, err
	}
	changed, err := m.apply(ctx, identity, user, options.DryRun, func() error { return validate(ctx, object, old) })
	if err != nil || len(options.DryRun) > 0 {
		return changed, false, err
	}
	return changed, false, m.removeIdentity(ctx, previous.Name, identity.Name)
}

// Delete unmaps an identity, so its user can no longer log in with it.
func (m *mapping) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	identity, user, err := m.pair(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if err := validate(ctx, view(identity, user)); err != nil {
		return nil, false, err
	}
	success := &metav1.Status{Status: metav1.StatusSuccess}
	if options != nil && len(options.DryRun) > 0 {
		return success, true, nil
	}
	identity.User = corev1.ObjectReference{}
	if err := write(ctx, m, "identities", identity); err != nil {
		return nil, false, err
	}
	return success, true, m.removeIdentity(ctx, user.Name, name)
}

// ends returns the identity and the user that a mapping refers to. If either does not exist, it
// returns an Invalid error.
func (m *mapping) ends(ctx context.Context, desired *userv1.UserIdentityMapping) (*userv1.Identity, *userv1.User, error) {
	var errs field.ErrorList
	identity, err := read[*userv1.Identity](ctx, m, "identities", desired.Identity.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil || desired.Identity.Name == "" {
		errs = append(errs, field.Invalid(field.NewPath("identity", "name"), desired.Identity.Name, "referenced identity does not exist"))
	}
	user, err := read[*userv1.User](ctx, m, "users", desired.User.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	if err != nil || desired.User.Name == "" {
		errs = append(errs, field.Invalid(field.NewPath("user", "name"), desired.User.Name, "referenced user does not exist"))
	}
	if desired.Name != "" && desired.Name != desired.Identity.Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), desired.Name, "must be the name of the identity"))
	}
	if len(errs) > 0 {
		return nil, nil, apierrors.NewInvalid(userv1.GroupVersion.WithKind("UserIdentityMapping").GroupKind(), desired.Name, errs)
	}
	return identity, user, nil
}

// apply maps an identity to a user. It updates the user first, because an entry in the user's list
// of identities has no effect until the identity refers to the user.
func (m *mapping) apply(ctx context.Context, identity *userv1.Identity, user *userv1.User, dryRun []string,
	admit func() error) (runtime.Object, error) {
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

// removeIdentity removes an identity from a user's list of identities, if the user exists.
func (m *mapping) removeIdentity(ctx context.Context, name, identity string) error {
	user, err := read[*userv1.User](ctx, m, "users", name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	user.Identities = slices.DeleteFunc(user.Identities, func(entry string) bool { return entry == identity })
	return write(ctx, m, "users", user)
}
