package user

import (
	"context"
	"slices"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// users returns the users.user.openshift.io resource. The name `~` refers to the request's user.
func users() apiserver.Served {
	return apiserver.Resource[*userv1.User]{
		Plural:    "users",
		ValidName: userName,
		Validate:  validateUser,
		Columns: []apiserver.Column[*userv1.User]{
			{Name: "UID", Description: "Unique ID of the user", Value: func(u *userv1.User) any { return string(u.UID) }},
			{Name: "Full Name", Description: "Name of the person", Value: func(u *userv1.User) any { return u.FullName }},
			{Name: "Identities", Description: "Identities that are mapped to the user", Value: func(u *userv1.User) any { return strings.Join(u.Identities, ", ") }},
		},
		Wrap: func(_ apiserver.Deps, store *apiserver.Store) rest.Storage { return &self{store} },
	}
}

// validateUser rejects invalid identities. It also rejects groups: the groups field is set only in
// the response for `~`.
func validateUser(_ context.Context, u, _ *userv1.User) (errs field.ErrorList) {
	for i, name := range u.Identities {
		if reasons := identityName(name, false); len(reasons) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("identities").Index(i), name, strings.Join(reasons, "; ")))
		}
	}
	if len(u.Groups) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("groups"), "is not stored; add the user to Group objects instead"))
	}
	return errs
}

// self is the user store, which also serves `~`.
type self struct{ *apiserver.Store }

// Get returns a user. For `~`, it returns the request's user with the request's groups, even if no
// User object exists, as for system:admin.
func (s *self) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if name != "~" {
		return s.Store.Get(ctx, name, options)
	}
	u, ok := request.UserFrom(ctx)
	if !ok || u.GetName() == "" {
		return nil, apierrors.NewForbidden(userv1.Resource("users"), "~", nil)
	}
	result := &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), UID: types.UID(u.GetUID())}}
	if len(userName(u.GetName(), false)) == 0 {
		existing, err := s.Store.Get(ctx, u.GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if object, ok := existing.(*userv1.User); ok && err == nil {
			result = object.DeepCopy()
		}
	}
	result.Groups = slices.DeleteFunc(slices.Clone(u.GetGroups()), virtual)
	return result, nil
}

// virtual reports whether a group only describes how a user was authenticated.
func virtual(group string) bool {
	return slices.Contains([]string{user.AllAuthenticated, user.AllUnauthenticated, "system:authenticated:oauth"}, group)
}
