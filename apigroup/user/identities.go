package user

import (
	"context"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apiserver"
)

// identities returns the identities.user.openshift.io resource. An identity is a user as known to a
// particular identity provider.
func identities() apiserver.Served {
	return apiserver.Resource[*userv1.Identity]{
		Plural:    "identities",
		ValidName: identityName,
		Prepare:   nameIdentity,
		Validate:  validateIdentity,
		Fields: map[string]func(*userv1.Identity) string{
			"providerName":     func(i *userv1.Identity) string { return i.ProviderName },
			"providerUserName": func(i *userv1.Identity) string { return i.ProviderUserName },
			"user.name":        func(i *userv1.Identity) string { return i.User.Name },
			"user.uid":         func(i *userv1.Identity) string { return string(i.User.UID) },
		},
		Columns: []apiserver.Column[*userv1.Identity]{
			{Name: "IDP Name", Description: "Name of the identity provider", Value: func(i *userv1.Identity) any { return i.ProviderName }},
			{Name: "IDP User Name", Description: "Name of the user at the provider", Value: func(i *userv1.Identity) any { return i.ProviderUserName }},
			{Name: "User Name", Description: "User of the identity", Value: func(i *userv1.Identity) any { return i.User.Name }},
			{Name: "User UID", Description: "Unique ID of that user", Value: func(i *userv1.Identity) any { return string(i.User.UID) }},
		},
	}
}

// nameIdentity sets an identity's name, which OpenShift's clients omit.
func nameIdentity(_ context.Context, identity, old *userv1.Identity) {
	if old == nil && identity.Name == "" && identity.GenerateName == "" {
		identity.Name = identity.ProviderName + ":" + identity.ProviderUserName
	}
}

// validateIdentity checks that the name consists of the provider name and the provider's user name,
// which are immutable.
func validateIdentity(_ context.Context, identity, old *userv1.Identity) (errs field.ErrorList) {
	provider, name := field.NewPath("providerName"), field.NewPath("providerUserName")
	if reasons := providerName(identity.ProviderName); identity.ProviderName == "" {
		errs = append(errs, field.Required(provider, "name the identity provider"))
	} else if len(reasons) > 0 {
		errs = append(errs, field.Invalid(provider, identity.ProviderName, strings.Join(reasons, "; ")))
	}
	if identity.ProviderUserName == "" {
		errs = append(errs, field.Required(name, "name the user at the provider"))
	}
	if want := identity.ProviderName + ":" + identity.ProviderUserName; identity.Name != want && len(errs) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), identity.Name, "must be "+want))
	}
	if user := identity.User; user.Name == "" && user.UID != "" {
		errs = append(errs, field.Required(field.NewPath("user", "name"), "name the user with this UID"))
	} else if reasons := userName(user.Name, false); user.Name != "" && len(reasons) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("user", "name"), user.Name, strings.Join(reasons, "; ")))
	}
	if old != nil && old.ProviderName != identity.ProviderName {
		errs = append(errs, field.Forbidden(provider, "cannot be changed"))
	}
	if old != nil && old.ProviderUserName != identity.ProviderUserName {
		errs = append(errs, field.Forbidden(name, "cannot be changed"))
	}
	return errs
}
