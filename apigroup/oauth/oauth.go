// Package oauth serves the API group oauth.openshift.io: OAuth clients, what users have granted them, authorization codes and access tokens.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.7.7. The wire types are github.com/openshift/api/oauth/v1's.
package oauth

import (
	"strconv"
	"strings"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// Feature is the API group as the API server serves it.
func Feature() apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: oauthv1.GroupVersion,
		Install:      oauthv1.Install,
		Legacy:       oauthv1.DeprecatedInstallWithoutGroup,
		Resources:    []apiserver.Served{clients(), authorizations(), codes(), tokens(), ownTokens()},
	}}}
}

// clients is the resource oauthclients.oauth.openshift.io.
func clients() apiserver.Served {
	return apiserver.Resource[*oauthv1.OAuthClient]{
		Plural:    "oauthclients",
		ValidName: clientName,
		Validate:  validateClient,
		Columns: []apiserver.Column[*oauthv1.OAuthClient]{
			{Name: "Secret", Description: "Secret of the client", Value: func(c *oauthv1.OAuthClient) any { return c.Secret }},
			{Name: "WWW-Challenge", Description: "Whether it is challenged by WWW-Authenticate", Value: func(c *oauthv1.OAuthClient) any { return c.RespondWithChallenges }},
			{Name: "Token-Max-Age", Description: "How long its tokens count", Value: func(c *oauthv1.OAuthClient) any { return maxAge(c.AccessTokenMaxAgeSeconds) }},
			{Name: "Redirect URIs", Description: "Where answers may go", Value: func(c *oauthv1.OAuthClient) any { return strings.Join(c.RedirectURIs, ",") }},
		},
	}
}

// maxAge is a client's age of tokens in words.
func maxAge(seconds *int32) string {
	switch {
	case seconds == nil:
		return "default"
	case *seconds == 0:
		return "unexpiring"
	}
	return (time.Duration(*seconds) * time.Second).String()
}

// authorizations is the resource oauthclientauthorizations.oauth.openshift.io.
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
			{Name: "User Name", Description: "User who granted", Value: func(a *oauthv1.OAuthClientAuthorization) any { return a.UserName }},
			{Name: "Client Name", Description: "Client that was granted", Value: func(a *oauthv1.OAuthClientAuthorization) any { return a.ClientName }},
			{Name: "Scopes", Description: "What was granted", Value: func(a *oauthv1.OAuthClientAuthorization) any { return strings.Join(a.Scopes, ",") }},
		},
	}
}

// codes is the resource oauthauthorizetokens.oauth.openshift.io: authorization codes. The store forgets them when they have expired.
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
			{Name: "User Name", Description: "User who granted", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.UserName }},
			{Name: "Client Name", Description: "Client that may exchange it", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.ClientName }},
			apiserver.Age[*oauthv1.OAuthAuthorizeToken](),
			{Name: "Expires", Description: "When it ends", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return end(t.CreationTimestamp.Time, t.ExpiresIn) }},
			{Name: "Redirect URI", Description: "Where it was sent", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return t.RedirectURI }},
			{Name: "Scopes", Description: "What it grants", Value: func(t *oauthv1.OAuthAuthorizeToken) any { return strings.Join(t.Scopes, ",") }},
		},
	}
}

// tokens is the resource oauthaccesstokens.oauth.openshift.io. The store forgets them when they have expired.
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
		{Name: "User Name", Description: "User whom it identifies", Value: func(t *oauthv1.OAuthAccessToken) any { return t.UserName }},
		{Name: "Client Name", Description: "Client that it was given to", Value: func(t *oauthv1.OAuthAccessToken) any { return t.ClientName }},
		{Name: "Created", Description: "When it was made", Value: func(t *oauthv1.OAuthAccessToken) any { return apiserver.Since(t.CreationTimestamp) }},
		{Name: "Expires", Description: "When it ends", Value: func(t *oauthv1.OAuthAccessToken) any { return end(t.CreationTimestamp.Time, t.ExpiresIn) }},
		{Name: "Redirect URI", Description: "Where it was sent", Value: func(t *oauthv1.OAuthAccessToken) any { return t.RedirectURI }},
		{Name: "Scopes", Description: "What it allows", Value: func(t *oauthv1.OAuthAccessToken) any { return strings.Join(t.Scopes, ",") }},
	}
}

// end is when something that was made at a time ends after seconds, 0 being never.
func end(made time.Time, seconds int64) string {
	if seconds == 0 {
		return "never"
	}
	if seconds < 0 || seconds > int64(maxSeconds) {
		return strconv.FormatInt(seconds, 10) + "s"
	}
	return made.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}

// maxSeconds is the longest time that a duration can have.
const maxSeconds = 1 << 33
