package authorization

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	userv1 "github.com/openshift/api/user/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver"
)

// restrictions returns the rolebindingrestrictions resource, which limits the subjects that roles
// can be bound to in a project.
func restrictions() apiserver.Served {
	return apiserver.Resource[*authorizationv1.RoleBindingRestriction]{
		Plural: "rolebindingrestrictions", Namespaced: true,
		Validate: func(_ context.Context, r, _ *authorizationv1.RoleBindingRestriction) field.ErrorList {
			return validateRestriction(r)
		},
		Columns: []apiserver.Column[*authorizationv1.RoleBindingRestriction]{
			{Name: "Subject Type", Description: "What the restriction allows", Value: func(r *authorizationv1.RoleBindingRestriction) any {
				switch {
				case r.Spec.UserRestriction != nil:
					return "User"
				case r.Spec.GroupRestriction != nil:
					return "Group"
				}
				return "ServiceAccount"
			}},
		},
	}
}

func validateRestriction(r *authorizationv1.RoleBindingRestriction) (errs field.ErrorList) {
	at := field.NewPath("spec")
	set := 0
	if users := r.Spec.UserRestriction; users != nil {
		set++
		if len(users.Users)+len(users.Groups)+len(users.Selectors) == 0 {
			errs = append(errs, field.Invalid(at.Child("userrestriction"), "", "must name users, groups or labels"))
		}
		errs = append(errs, validateSelectors(users.Selectors, at.Child("userrestriction", "labels"))...)
	}
	if groups := r.Spec.GroupRestriction; groups != nil {
		set++
		if len(groups.Groups)+len(groups.Selectors) == 0 {
			errs = append(errs, field.Invalid(at.Child("grouprestriction"), "", "must name groups or labels"))
		}
		errs = append(errs, validateSelectors(groups.Selectors, at.Child("grouprestriction", "labels"))...)
	}
	if accounts := r.Spec.ServiceAccountRestriction; accounts != nil {
		set++
		if len(accounts.ServiceAccounts)+len(accounts.Namespaces) == 0 {
			errs = append(errs, field.Invalid(at.Child("serviceaccountrestriction"), "", "must name service accounts or namespaces"))
		}
	}
	if set != 1 {
		errs = append(errs, field.Invalid(at, "", "must have exactly one of userrestriction, grouprestriction and serviceaccountrestriction"))
	}
	return errs
}

func validateSelectors(selectors []metav1.LabelSelector, at *field.Path) (errs field.ErrorList) {
	for i := range selectors {
		errs = append(errs, validation.ValidateLabelSelector(&selectors[i], validation.LabelSelectorValidationOptions{}, at.Index(i))...)
	}
	return errs
}

// restrict is the admission plugin that enforces role binding restrictions. In a project with
// restrictions, a role can be bound to a subject only if at least one restriction allows the
// subject.
type restrict struct {
	*admission.Handler
	stores map[schema.GroupResource]*registry.Store
}

var _ admission.ValidationInterface = &restrict{}

// Validate rejects a binding if the binding adds a subject that no restriction allows.
func (r *restrict) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != rbacv1.Resource("rolebindings") || a.GetSubresource() != "" {
		return nil
	}
	binding, ok := a.GetObject().(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	added := binding.Subjects
	if old, ok := a.GetOldObject().(*rbacv1.RoleBinding); ok {
		added = slices.DeleteFunc(slices.Clone(added), func(s rbacv1.Subject) bool { return slices.Contains(old.Subjects, s) })
	}
	if len(added) == 0 {
		return nil
	}
	list, err := r.stores[authorizationv1.Resource("rolebindingrestrictions")].List(
		request.WithNamespace(ctx, a.GetNamespace()), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("list project restrictions: %w", err))
	}
	restrictions := list.(*authorizationv1.RoleBindingRestrictionList).Items
	if len(restrictions) == 0 {
		return nil
	}
	for _, s := range added {
		allowed := slices.ContainsFunc(restrictions, func(restriction authorizationv1.RoleBindingRestriction) bool {
			return r.allows(ctx, restriction.Spec, s, a.GetNamespace())
		})
		if !allowed {
			return admission.NewForbidden(a, fmt.Errorf("rolebindings to %s %q are not allowed in project %q", s.Kind, s.Name, a.GetNamespace()))
		}
	}
	return nil
}

func (r *restrict) allows(ctx context.Context, spec authorizationv1.RoleBindingRestrictionSpec, s rbacv1.Subject, namespace string) bool {
	switch {
	case spec.UserRestriction != nil && s.Kind == rbacv1.UserKind:
		return r.allowsUser(ctx, spec.UserRestriction, s.Name)
	case spec.GroupRestriction != nil && s.Kind == rbacv1.GroupKind:
		return slices.Contains(spec.GroupRestriction.Groups, s.Name) || selects(spec.GroupRestriction.Selectors, r.labelsOf(ctx, "groups", s.Name))
	case spec.ServiceAccountRestriction != nil && s.Kind == rbacv1.ServiceAccountKind:
		if s.Namespace == "" {
			s.Namespace = namespace
		}
		return slices.Contains(spec.ServiceAccountRestriction.Namespaces, s.Namespace) ||
			slices.ContainsFunc(spec.ServiceAccountRestriction.ServiceAccounts, func(account authorizationv1.ServiceAccountReference) bool {
				return account.Name == s.Name && (account.Namespace == s.Namespace || account.Namespace == "" && s.Namespace == namespace)
			})
	}
	return false
}

func (r *restrict) allowsUser(ctx context.Context, restriction *authorizationv1.UserRestriction, name string) bool {
	if slices.Contains(restriction.Users, name) || selects(restriction.Selectors, r.labelsOf(ctx, "users", name)) {
		return true
	}
	store := r.stores[userv1.Resource("groups")]
	for _, group := range restriction.Groups {
		object, err := store.Get(ctx, group, &metav1.GetOptions{})
		if err == nil && slices.Contains(object.(*userv1.Group).Users, name) {
			return true
		}
	}
	return false
}

// labelsOf returns the labels of a user or group, or nil if the object cannot be read.
func (r *restrict) labelsOf(ctx context.Context, resource, name string) labels.Set {
	store := r.stores[userv1.Resource(resource)]
	if store == nil {
		return nil
	}
	object, err := store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil
	}
	set := labels.Set{}
	maps.Copy(set, object.(metav1.Object).GetLabels())
	return set
}

// selects reports whether at least one of the selectors matches the labels. If set is nil, no
// selector matches.
func selects(selectors []metav1.LabelSelector, set labels.Set) bool {
	return slices.ContainsFunc(selectors, func(item metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&item)
		return err == nil && set != nil && selector.Matches(set)
	})
}
