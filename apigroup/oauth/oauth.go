// Package oauth serves the API group oauth.openshift.io: OAuth clients, the grants that users give
// to clients, authorization codes and access tokens.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.7.7. The wire types are defined in
// github.com/openshift/api/oauth/v1.
package oauth

import (
	"strconv"
	"strings"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// Feature returns the oauth.openshift.io API group so that it can be registered with the API
// server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: oauthv1.GroupVersion,
		Install:      oauthv1.Install,
		Legacy:       oauthv1.DeprecatedInstallWithoutGroup,
		Resources:    []apiserver.Served{clients(), authorizations(), codes(), tokens(), ownTokens()},
	}}}
}

// clients returns the oauthclients.oauth.openshift.io resource.
func clients() apiserver.Served {
	return apiserver.Resource[*oauthv1.OAuthClient]{
		Plural:    "oauthclients",
		ValidName: clientName,
		Validate:  validateClient,
		Columns: []apiserver.Column[*oauthv1.OAuthClient]{
			{Name: "Secret", Description: "Secret of the client", Value: func(c *oauthv1.OAuthClient) any { return c.Secret }},
			{Name: "WWW-Challenge", Description: "Whether responses have a WWW-Authenticate challenge", Value: func(c *oauthv1.OAuthClient) any { return c.RespondWithChallenges }},
			{Name: "Token-Max-Age", Description: "Lifetime of its tokens", Value: func(c *oauthv1.OAuthClient) any { return maxAge(c.AccessTokenMaxAgeSeconds) }},
			{Name: "Redirect URIs", Description: "Allowed redirect URIs", Value: func(c *oauthv1.OAuthClient) any { return strings.Join(c.RedirectURIs, ",") }},
		},
	}
}

// maxAge formats the maximum age of a client's tokens, in seconds.
func maxAge(seconds *int32) string {
	switch {
	case seconds == nil:
		return "default"
	case *seconds == 0:
		return "unexpiring"
	}
	return (time.Duration(*seconds) * time.Second).String()
}

// authorizations returns the oauthclientauthorizations.oauth.openshift.io resource.
func authorizations() apiserver.Served {
	return apiserver.Resource[*oauthv1.OAuthClientAuthorization]{
		Plural:    "oauthclientauthorizations",
		ValidName: segment,
		Validate:  validateAuthorization,
		Fields: map[string]func(*oauthv1.OAuthClientAuthorization) string{
			"clientName": func(a *oauthv1.OAuthClientAuthorization) string { return a.ClientName },
			"userName":   func(a *oauthv1.OAuthClientAuthorization) string { return a.UserName },
			"userUID":    func(a *oauthv1.OAuthClientAuthorization) string { return a.UserUID },
		},
		Columns: []apiserver.Column[*oauthv1.OAuthClientAuthorization]{
			{Name: "User Name", Description: "User who granted the scopes", Value: func(a *oauthv1.OAuthClientAuthorization) any { return a.UserName }},
			{Name: "Client Name", Description: "Client with the grant", Value: func(a *oauthv1.OAuthClientAuthorization) any { return a.ClientName }},
			{Name: "Scopes", Description: "Granted scopes", Value: func(a *oauthv1.OAuthClientAuthorization) any { return strings.Join(a.Scopes, ",") }},
		},
	}
}

// codes returns the oauthauthorizetokens.oauth.openshift.io resource, which contains authorization
// codes. The store deletes expired codes.
func codes() apiserver.Served {
	return apiserver.Resource[*oauthv1.OAuthAuthorizeToken]{
		Plural:    "oauthauthorizetokens",
		ValidName: tokenName,
		Validate:  validateCode,
		Adjust:    expire,
		Fields: map[string]func(*oauthv1.OAuthAuthorizeToken) string{
			"clientName": func(t *oauthv1.OAuthAuthorizeToken) string { return t.ClientName },
			"userName":   func(t *oauthv1.OAuthAuthorizeToken) string { return t.UserName },
			"userUID":    func(t *oauthv1.OAuthAuthorizeToken) string { return t.UserUID },
		},
		Columns: []apiserver.Column[*oauthv1.OAuthAuthorizeToken]{
			{Name: "User Name", Description: "User who granted the scopes", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.UserName }},
			{Name: "Client Name", Description: "Client that can exchange the code", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.ClientName }},
			apiserver.Age[*oauthv1.OAuthAuthorizeToken](),
			{Name: "Expires", Description: "Expiration time", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return end(t.CreationTimestamp.Time, t.ExpiresIn) }},
			{Name: "Redirect URI", Description: "Redirect URI of the response", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.RedirectURI }},
			{Name: "Scopes", Description: "Granted scopes", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return strings.Join(t.Scopes, ",") }},
		},
	}
}

// tokens returns the oauthaccesstokens.oauth.openshift.io resource. The store deletes expired
// tokens.
func tokens() apiserver.Served {
	return apiserver.Resource[*oauthv1.OAuthAccessToken]{
		Plural:    "oauthaccesstokens",
		ValidName: tokenName,
		Validate:  validateToken,
		Adjust:    expire,
		Fields: map[string]func(*oauthv1.OAuthAccessToken) string{
			"clientName":     func(t *oauthv1.OAuthAccessToken) string { return t.ClientName },
			"userName":       func(t *oauthv1.OAuthAccessToken) string { return t.UserName },
			"userUID":        func(t *oauthv1.OAuthAccessToken) string { return t.UserUID },
			"authorizeToken": func(t *oauthv1.OAuthAccessToken) string { return t.AuthorizeToken },
		},
		Columns: tokenColumns(),
	}
}

func tokenColumns() []apiserver.Column[*oauthv1.OAuthAccessToken] {
	return []apiserver.Column[*oauthv1.OAuthAccessToken]{
		{Name: "User Name", Description: "User of the token", Value: func(t *oauthv1.OAuthAccessToken) any { return t.UserName }},
		{Name: "Client Name", Description: "Client of the token", Value: func(t *oauthv1.OAuthAccessToken) any { return t.ClientName }},
		{Name: "Created", Description: "Age of the token", Value: func(t *oauthv1.OAuthAccessToken) any { return apiserver.Since(t.CreationTimestamp) }},
		{Name: "Expires", Description: "Expiration time", Value: func(t *oauthv1.OAuthAccessToken) any { return end(t.CreationTimestamp.Time, t.ExpiresIn) }},
		{Name: "Redirect URI", Description: "Redirect URI of the response", Value: func(t *oauthv1.OAuthAccessToken) any { return t.RedirectURI }},
		{Name: "Scopes", Description: "Granted scopes", Value: func(t *oauthv1.OAuthAccessToken) any { return strings.Join(t.Scopes, ",") }},
	}
}

// end formats the expiration time of an object that expires the given number of seconds after its
// creation. If seconds is 0, the object never expires.
func end(created time.Time, seconds int64) string {
	if seconds == 0 {
		return "never"
	}
	if seconds < 0 || seconds > int64(maxSeconds) {
		return strconv.FormatInt(seconds, 10) + "s"
	}
	return created.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}

// maxSeconds is the maximum number of seconds that a time.Duration can represent, rounded down to a
// power of two.
const maxSeconds = 1 << 33
