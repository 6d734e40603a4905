package oauth

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/oauth/scope"
)

const (
	// minTokenName is the minimum length of the name of a code or token. Shorter names could be
	// guessed.
	minTokenName = 32
	// hashPrefix is the prefix of the name of a token object whose name is the token's hash. The
	// hash has hashLength characters.
	hashPrefix = "sha256~"
	hashLength = 43
	// minInactivity is the minimum inactivity timeout for tokens, in seconds, as in OpenShift 3.
	minInactivity = 300
)

// segment returns the reasons why a name is not a valid path segment.
func segment(name string, prefix bool) []string { return apiserver.ValidPathSegment(name, prefix) }

func clientName(name string, prefix bool) []string {
	reasons := segment(name, prefix)
	if strings.Contains(name, ":") {
		reasons = append(reasons, `may not contain ":", which is in the names of service accounts`)
	}
	return reasons
}

func tokenName(name string, prefix bool) []string {
	reasons := segment(name, prefix)
	if hash, hashed := strings.CutPrefix(name, hashPrefix); hashed {
		if _, err := base64.RawURLEncoding.DecodeString(hash); err != nil || len(hash) != hashLength {
			reasons = append(reasons, "must be sha256~ and the SHA-256 hash of the token in base64url")
		}
		return reasons
	}
	if len(name) < minTokenName {
		reasons = append(reasons, fmt.Sprintf("must be at least %d characters long", minTokenName))
	}
	return reasons
}

func validateClient(_ context.Context, client, _ *oauthv1.OAuthClient) (errs field.ErrorList) {
	for i, address := range client.RedirectURIs {
		errs = append(errs, validateRedirect(field.NewPath("redirectURIs").Index(i), address)...)
	}
	for i, secret := range client.AdditionalSecrets {
		if secret == "" {
			errs = append(errs, field.Required(field.NewPath("additionalSecrets").Index(i), "set a secret"))
		}
	}
	methods := []oauthv1.GrantHandlerType{"", oauthv1.GrantHandlerAuto, oauthv1.GrantHandlerPrompt, oauthv1.GrantHandlerDeny}
	if !slices.Contains(methods, client.GrantMethod) {
		errs = append(errs, field.NotSupported(field.NewPath("grantMethod"), client.GrantMethod, methods[1:]))
	}
	if age := client.AccessTokenMaxAgeSeconds; age != nil && *age < 0 {
		errs = append(errs, field.Invalid(field.NewPath("accessTokenMaxAgeSeconds"), *age,
			"must not be negative; 0 means that tokens do not expire"))
	}
	if timeout := client.AccessTokenInactivityTimeoutSeconds; timeout != nil && *timeout != 0 && *timeout < minInactivity {
		errs = append(errs, field.Invalid(field.NewPath("accessTokenInactivityTimeoutSeconds"), *timeout,
			fmt.Sprintf("must be 0 or at least %d", minInactivity)))
	}
	for i, restriction := range client.ScopeRestrictions {
		errs = append(errs, validateRestriction(field.NewPath("scopeRestrictions").Index(i), restriction)...)
	}
	return errs
}

func validateRestriction(at *field.Path, restriction oauthv1.ScopeRestriction) (errs field.ErrorList) {
	roles := restriction.ClusterRole
	if (len(restriction.ExactValues) > 0) == (roles != nil) {
		return field.ErrorList{field.Invalid(at, restriction, "must have either literals or clusterRole")}
	}
	for i, text := range restriction.ExactValues {
		if text == "" {
			errs = append(errs, field.Required(at.Child("literals").Index(i), "set a scope"))
		}
	}
	if roles != nil && len(roles.RoleNames) == 0 {
		errs = append(errs, field.Required(at.Child("clusterRole", "roleNames"), "name roles, or * for all"))
	}
	if roles != nil && len(roles.Namespaces) == 0 {
		errs = append(errs, field.Required(at.Child("clusterRole", "namespaces"), "name namespaces, or * for all"))
	}
	return errs
}

func validateRedirect(at *field.Path, address string) field.ErrorList {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return field.ErrorList{field.Required(at, "set an address")}
	case err != nil || !u.IsAbs():
		return field.ErrorList{field.Invalid(at, address, "must be an absolute address")}
	case strings.Contains(address, "#"):
		return field.ErrorList{field.Invalid(at, address, "must not have a fragment")}
	case slices.Contains(strings.Split(u.Path, "/"), ".."):
		return field.ErrorList{field.Invalid(at, address, "must not have .. in its path")}
	}
	return nil
}

// validateScopes requires at least one scope, and validates each scope.
func validateScopes(scopes []string) (errs field.ErrorList) {
	at := field.NewPath("scopes")
	if len(scopes) == 0 {
		return field.ErrorList{field.Required(at, "set at least one scope, such as user:full")}
	}
	for i, text := range scopes {
		if err := scope.Validate(text); err != nil {
			errs = append(errs, field.Invalid(at.Index(i), text, err.Error()))
		}
	}
	return errs
}

// validateParties requires a client and a user. The UID distinguishes the user from a later user
// with the same name.
func validateParties(client, user, uid string) (errs field.ErrorList) {
	for name, value := range map[string]string{"clientName": client, "userName": user, "userUID": uid} {
		if value == "" {
			errs = append(errs, field.Required(field.NewPath(name), ""))
		} else if reasons := content.IsPathSegmentName(value); len(reasons) > 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), value, strings.Join(reasons, "; ")))
		}
	}
	return errs
}

func validateAuthorization(_ context.Context, a, old *oauthv1.OAuthClientAuthorization) field.ErrorList {
	errs := append(validateParties(a.ClientName, a.UserName, a.UserUID), validateScopes(a.Scopes)...)
	if want := a.UserName + ":" + a.ClientName; a.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), a.Name, "must be "+want))
	}
	return errs
}

func validateCode(_ context.Context, code, old *oauthv1.OAuthAuthorizeToken) field.ErrorList {
	errs := append(validateParties(code.ClientName, code.UserName, code.UserUID), validateScopes(code.Scopes)...)
	errs = append(errs, validateAge(code.ExpiresIn)...)
	if code.RedirectURI != "" {
		errs = append(errs, validateRedirect(field.NewPath("redirectURI"), code.RedirectURI)...)
	}
	if old == nil {
		errs = append(errs, validateLengths(map[string]string{"redirectURI": code.RedirectURI, "state": code.State}, code.Scopes)...)
	} else {
		previous := old.DeepCopy()
		previous.TypeMeta, previous.ObjectMeta = code.TypeMeta, code.ObjectMeta
		errs = append(errs, unchanged(previous, code)...)
	}
	return errs
}

func validateToken(_ context.Context, token, old *oauthv1.OAuthAccessToken) field.ErrorList {
	errs := validateParties(token.ClientName, token.UserName, token.UserUID)
	if len(token.Scopes) > 0 { // a token without scopes has all permissions of its user
		errs = append(errs, validateScopes(token.Scopes)...)
	}
	errs = append(errs, validateAge(token.ExpiresIn)...)
	if token.RedirectURI != "" {
		errs = append(errs, validateRedirect(field.NewPath("redirectURI"), token.RedirectURI)...)
	}
	if token.InactivityTimeoutSeconds < 0 {
		errs = append(errs, field.Invalid(field.NewPath("inactivityTimeoutSeconds"), token.InactivityTimeoutSeconds,
			"must not be negative"))
	}
	if old == nil {
		errs = append(errs, validateLengths(map[string]string{"redirectURI": token.RedirectURI}, token.Scopes)...)
	} else {
		previous := old.DeepCopy()
		previous.TypeMeta, previous.ObjectMeta = token.TypeMeta, token.ObjectMeta
		previous.InactivityTimeoutSeconds = token.InactivityTimeoutSeconds
		errs = append(errs, unchanged(previous, token)...)
	}
	return errs
}

// validateLengths limits the length of strings that clients choose.
func validateLengths(texts map[string]string, scopes []string) (errs field.ErrorList) {
	texts["scopes"] = strings.Join(scopes, " ")
	for name, text := range texts {
		if len(text) > scope.MaxParameter {
			errs = append(errs, field.TooLong(field.NewPath(name), "", scope.MaxParameter))
		}
	}
	return errs
}

func validateAge(seconds int64) field.ErrorList {
	if seconds < 0 || seconds > maxSeconds {
		return field.ErrorList{field.Invalid(field.NewPath("expiresIn"), seconds,
			fmt.Sprintf("must be between 0 (never) and %d", maxSeconds))}
	}
	return nil
}

// unchanged rejects changes to a code, token or grant.
func unchanged(previous, current runtime.Object) field.ErrorList {
	if apiequality.Semantic.DeepEqual(previous, current) {
		return nil
	}
	return field.ErrorList{field.Forbidden(nil, "a grant is immutable; delete it, and request another one")}
}

// expire configures the store to delete codes and tokens when they expire.
func expire(_ apiserver.Deps, store *registry.Store) {
	store.TTLFunc = func(object runtime.Object, existing uint64, update bool) (uint64, error) {
		if update {
			return existing, nil
		}
		switch typed := object.(type) {
		case *oauthv1.OAuthAccessToken:
			return uint64(typed.ExpiresIn), nil
		case *oauthv1.OAuthAuthorizeToken:
			return uint64(typed.ExpiresIn), nil
		}
		return 0, nil
	}
}
