package broker

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

// identityHeader says for whom a platform makes a request: `kubernetes` and a user, as JSON in
// base64.
const identityHeader = "X-Broker-API-Originating-Identity"

// originator returns for whom a request is made: the user whom the platform names, or the caller.
func (b *broker) originator(r *http.Request) (user.Info, error) {
	caller, ok := request.UserFrom(r.Context())
	if !ok {
		return nil, refuse(http.StatusUnauthorized, "nobody is known to have made the request")
	}
	header := r.Header.Get(identityHeader)
	if header == "" {
		return caller, nil
	}
	platform, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(platform, kubernetesPlatform) {
		return nil, refuse(http.StatusBadRequest, "header %s is of the platform %q, and must be of %s", identityHeader, platform, kubernetesPlatform)
	}
	var named authenticationv1.UserInfo
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "read header %s: %w", identityHeader, err)
	}
	if named.Username == "" {
		return nil, refuse(http.StatusBadRequest, "header %s names no user: it lacks username", identityHeader)
	}
	extra := make(map[string][]string, len(named.Extra))
	for key, values := range named.Extra {
		extra[key] = values
	}
	who := &user.DefaultInfo{Name: named.Username, UID: named.UID, Groups: named.Groups, Extra: extra}
	return who, b.mayName(r, caller, who)
}

// reserved begins the names of users and groups that the platform itself gives rights to.
const reserved = "system:"

// scopesKey is the key of what a user's token is limited to. Naming it takes rights away.
const scopesKey = "scopes.authorization.openshift.io"

// mayName checks whom a caller names as the originator. The role of platforms is enough for people
// and for the groups that everyone who logs in is in. Every other group, reserved name and extra
// value needs the right to impersonate it, as at the API server, so that the role alone never leads
// to system:masters or to a group with rights of its own.
func (b *broker) mayName(r *http.Request, caller, who user.Info) error {
	if strings.HasPrefix(who.GetName(), reserved) && who.GetName() != caller.GetName() {
		if err := b.mayImpersonate(r, caller, "users", "", who.GetName()); err != nil {
			return err
		}
	}
	everyone := []string{user.AllAuthenticated, user.AllAuthenticated + ":oauth"}
	for _, group := range who.GetGroups() {
		if slices.Contains(everyone, group) || who.GetName() == caller.GetName() && slices.Contains(caller.GetGroups(), group) {
			continue
		}
		if err := b.mayImpersonate(r, caller, "groups", "", group); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(who.GetExtra())) {
		if key == scopesKey {
			continue
		}
		for _, value := range who.GetExtra()[key] {
			if err := b.mayImpersonate(r, caller, "userextras", key, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayImpersonate checks a right as the API server does for the headers of impersonation.
func (b *broker) mayImpersonate(r *http.Request, caller user.Info, resource, subresource, name string) error {
	asked := authorizer.AttributesRecord{
		User: caller, Verb: "impersonate", APIVersion: "v1", Resource: resource, Subresource: subresource, Name: name, ResourceRequest: true,
	}
	if resource == "userextras" {
		asked.APIGroup = authenticationv1.GroupName
	}
	decision, _, err := b.authorizer.Authorize(r.Context(), asked)
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the right of %q: %w", caller.GetName(), err)
	}
	return refuse(http.StatusForbidden, "header %s: user %q may not impersonate %s %q, for which an administrator gives the right", identityHeader, caller.GetName(), resource, name)
}
