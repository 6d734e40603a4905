// Package oauth is the built-in OAuth server: people and programs get access tokens here, by way of identity providers, and the API server
// recognizes the tokens.
//
// It is a feature of the API server: handlers of paths such as /oauth/authorize and /login, which everyone may reach, an authenticator of
// bearer tokens, and an authorizer that holds tokens to their scopes. Its objects belong to the API groups user.openshift.io and
// oauth.openshift.io. The flows are written here and not taken from a library because OpenShift's challenges, redirects and names of
// stored tokens are the interface; there are two grants only.
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

// Config is what the server is told. It follows MasterConfig's oauthConfig.
type Config struct {
	// PublicURL is the server's address for browsers and clients, and ConsoleURL the web console's, which may be empty.
	PublicURL, ConsoleURL string
	// Providers are the identity providers in the order in which they are asked.
	Providers []login.Provider
	// AlwaysShowProviderSelection shows the page of providers even when there is only one.
	AlwaysShowProviderSelection bool
	// GrantMethod and ServiceAccountGrantMethod say what happens when a user has not granted a client its scopes.
	GrantMethod, ServiceAccountGrantMethod oauthv1.GrantHandlerType
	// SessionName, SessionMaxAge and SessionSecrets are for the browsers' sessions.
	SessionName    string
	SessionMaxAge  time.Duration
	SessionSecrets []session.Secret
	// TokenMaxAge, CodeMaxAge and TokenInactivityTimeout are in seconds.
	TokenMaxAge, CodeMaxAge, TokenInactivityTimeout int32
	// Templates replace pages.
	Templates page.Templates
	// Metrics counts logins; nil counts none.
	Metrics *login.Metrics
	// Throttle slows down who guesses passwords.
	Throttle *throttle.Throttle
}
