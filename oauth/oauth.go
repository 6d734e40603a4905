// Package oauth implements the built-in OAuth server. It authenticates users with identity
// providers and issues access tokens. The API server authenticates requests with these tokens.
//
// It is a feature of the API server: handlers for public paths such as /oauth/authorize and /login,
// a bearer token authenticator, and an authorizer that enforces token scopes. Its objects are in
// the API groups user.openshift.io and oauth.openshift.io. The package implements the OAuth flows
// without a library, because OpenShift's challenges, redirects and stored token names are part of
// the interface. In addition, there are only two grant types.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.1.4; RFC 6749, RFC 7636, RFC 8414.
package oauth

import (
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
)

// Config is the server's configuration. It corresponds to oauthConfig in MasterConfig.
type Config struct {
	// PublicURL is the server's URL for browsers and clients. ConsoleURL is the web console's URL,
	// which is optional.
	PublicURL, ConsoleURL string
	// SeveralServers means that the cluster has several masters. Their servers have different URLs
	// and share the same clients.
	SeveralServers bool
	// Providers contains the identity providers, in the order in which they are tried.
	Providers []login.Provider
	// AlwaysShowProviderSelection shows the provider selection page even if there is only one
	// provider.
	AlwaysShowProviderSelection bool
	// GrantMethod applies if a user has not granted the requested scopes and the OAuthClient does
	// not set a grant method. If the client is a service account, ServiceAccountGrantMethod applies
	// instead.
	GrantMethod, ServiceAccountGrantMethod oauthv1.GrantHandlerType
	// SessionName, SessionMaxAge and SessionSecrets configure browser sessions.
	SessionName    string
	SessionMaxAge  time.Duration
	SessionSecrets []session.Secret
	// TokenMaxAge, CodeMaxAge and TokenInactivityTimeout are in seconds. For tokens, 0 means no
	// limit.
	TokenMaxAge, CodeMaxAge, TokenInactivityTimeout int32
	// Templates replaces built-in pages.
	Templates page.Templates
	// Metrics counts logins. It is optional.
	Metrics *login.Metrics
	// Throttle limits the rate at which clients can guess passwords.
	Throttle *throttle.Throttle
}
