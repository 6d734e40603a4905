package osbserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// IdentityHeader is the header that identifies the originator of a platform's request:
// `kubernetes`, followed by a user as base64-encoded JSON.
const IdentityHeader = "X-Broker-API-Originating-Identity"

// Originator returns a request's originator: the user that the platform specifies, or otherwise the
// caller. It uses permissions to check that the caller may specify this user.
func Originator(r *http.Request, permissions authorizer.Authorizer) (user.Info, error) {
	caller, ok := request.UserFrom(r.Context())
	if !ok {
		return nil, Refuse(http.StatusUnauthorized, "the request has no user")
	}
	header := r.Header.Get(IdentityHeader)
	if header == "" {
		return caller, nil
	}
	platform, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(platform, Platform) {
		return nil, Refuse(http.StatusBadRequest, "header %s is for the platform %q, must be for %s",
			IdentityHeader, platform, Platform)
	}
	var ref authenticationv1.UserInfo
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err == nil {
		err = json.Unmarshal(text, &ref)
	}
	if err != nil {
		return nil, Refuse(http.StatusBadRequest, "read header %s: %w", IdentityHeader, err)
	}
	if ref.Username == "" {
		return nil, Refuse(http.StatusBadRequest, "header %s has no user: username is missing", IdentityHeader)
	}
	extra := make(map[string][]string, len(ref.Extra))
	for key, values := range ref.Extra {
		extra[key] = values
	}
	u := &user.DefaultInfo{Name: ref.Username, UID: ref.UID, Groups: ref.Groups, Extra: extra}
	return u, mayName(r, permissions, caller, u)
}

// Platform is the platform's name in originators and request contexts.
const Platform = "kubernetes"

// reserved is the name prefix of users and groups that the platform grants permissions to.
const reserved = "system:"

// scopesKey is the extra key that contains a token's scopes. Every caller may set it, because
// scopes can only reduce permissions.
const scopesKey = "scopes.authorization.openshift.io"

// mayName returns an error if a caller may not specify an originator. A caller with the platforms'
// role may specify users, and groups that contain every logged-in user. All other groups, reserved
// names and extra values require permission to impersonate them, as in the API server. Therefore,
// no user can become a member of system:masters or another privileged group through this role.
func mayName(r *http.Request, permissions authorizer.Authorizer, caller, u user.Info) error {
	if strings.HasPrefix(u.GetName(), reserved) && u.GetName() != caller.GetName() {
		if err := mayImpersonate(r, permissions, caller, "users", "", u.GetName()); err != nil {
			return err
		}
	}
	everyone := []string{user.AllAuthenticated, user.AllAuthenticated + ":oauth"}
	for _, group := range u.GetGroups() {
		if slices.Contains(everyone, group) || u.GetName() == caller.GetName() && slices.Contains(caller.GetGroups(), group) {
			continue
		}
		if err := mayImpersonate(r, permissions, caller, "groups", "", group); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(u.GetExtra())) {
		if key == scopesKey {
			continue
		}
		for _, value := range u.GetExtra()[key] {
			if err := mayImpersonate(r, permissions, caller, "userextras", key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayImpersonate checks the same permission that the API server checks for impersonation headers.
func mayImpersonate(r *http.Request, permissions authorizer.Authorizer, caller user.Info, resource, subresource, name string) error {
	attributes := authorizer.AttributesRecord{
		User: caller, Verb: "impersonate", APIVersion: "v1", Resource: resource, Subresource: subresource, Name: name,
		ResourceRequest: true,
	}
	if resource == "userextras" {
		attributes.APIGroup = authenticationv1.GroupName
	}
	decision, _, err := permissions.Authorize(r.Context(), attributes)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check permission of %q: %w", caller.GetName(), err)
	}
	return Refuse(http.StatusForbidden, "header %s: user %q may not impersonate %s %q; an administrator can grant this permission",
		IdentityHeader, caller.GetName(), resource, name)
}
