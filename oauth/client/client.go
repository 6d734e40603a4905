// Package client finds OAuth clients: those that an OAuthClient object describes, and service accounts, which are clients of themselves.
//
// Source: OpenShift 3.9 Architecture, 4.1.4.1 to 4.1.4.3.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"

	oauthv1 "github.com/openshift/api/oauth/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/slipway-platform/slipway/oauth/store"
)

// ErrUnknown is the answer for an ID that no client has.
var ErrUnknown = errors.New("there is no such client")

// The clients that every cluster has.
const (
	// WebConsole requests tokens for the web console.
	WebConsole = "openshift-web-console"
	// Browser requests tokens at /oauth/token/request, for people to copy.
	Browser = "openshift-browser-client"
	// Challenging requests tokens for programs that answer WWW-Authenticate, such as `oc login`.
	Challenging = "openshift-challenging-client"
)

// Client is an OAuth client, wherever it is described.
type Client struct {
	// ID is its client_id.
	ID string
	// RedirectURIs are where answers may go.
	RedirectURIs []string
	// RespondWithChallenges answers 401 with WWW-Authenticate to who is not logged in, instead of a login page.
	RespondWithChallenges bool
	// GrantMethod says what happens when a user has not granted the client its scopes; empty follows the configuration.
	GrantMethod oauthv1.GrantHandlerType
	// ScopeRestrictions bound what it may ask for; none allow everything.
	ScopeRestrictions []oauthv1.ScopeRestriction
	// MaxAge and InactivityTimeout are for its tokens in seconds; nil follows the configuration, 0 has no end.
	MaxAge, InactivityTimeout *int32
	// OptionalChallenge allows a public client to get codes without a code challenge, or with a plain one.
	OptionalChallenge bool
	// Account is the service account that the client is, if it is one.
	Account *corev1.ServiceAccount

	// secrets are those of an OAuthClient.
	secrets []string
}

// ChallengeAnnotation of an OAuthClient with the value ChallengeOptional sets OptionalChallenge.
const (
	ChallengeAnnotation = "oauth.slipway.io/code-challenge"
	ChallengeOptional   = "optional"
)

// Public reports whether the client has no secret: every program can pretend to be the client.
func (c *Client) Public() bool { return c.Account == nil && slices.Contains(c.secrets, "") }

// verify tells whether a client secret is the client's. A client without secrets, which every program can be, has the empty one.
func (c *Client) verify(secret string) bool {
	given := sha256.Sum256([]byte(secret))
	found := 0
	for _, own := range c.secrets {
		hash := sha256.Sum256([]byte(own))
		found |= subtle.ConstantTimeCompare(given[:], hash[:])
	}
	return found == 1
}

// Registry finds clients.
type Registry struct {
	// Clients are the OAuthClient objects.
	Clients store.Objects[*oauthv1.OAuthClient]
	// Accounts finds service accounts; nil knows none.
	Accounts *Accounts
}

// Authenticate gives the client of an ID to who knows its secret, and ErrUnknown otherwise, after the same work whether or
// not there is such a client. For a service account each of its API tokens is a secret; the token is checked first.
func (r *Registry) Authenticate(ctx context.Context, id, secret string) (*Client, error) {
	if _, _, err := serviceaccount.SplitUsername(id); err == nil && r.Accounts != nil {
		return r.authenticateAccount(ctx, id, secret)
	}
	c, err := r.Find(ctx, id)
	if errors.Is(err, ErrUnknown) {
		c = &Client{secrets: []string{rand.Text()}} // which nobody knows
	} else if err != nil {
		return nil, err
	}
	if !c.verify(secret) {
		return nil, ErrUnknown
	}
	return c, nil
}

func (r *Registry) authenticateAccount(ctx context.Context, id, secret string) (*Client, error) {
	if secret == "" {
		return nil, ErrUnknown
	}
	if right, err := r.Accounts.verify(ctx, id, secret); err != nil || !right {
		return nil, cmp.Or(err, ErrUnknown)
	}
	c, err := r.Find(ctx, id)
	var misconfigured *Misconfigured
	if errors.As(err, &misconfigured) {
		return nil, ErrUnknown
	}
	return c, err
}

// Find gives the client of an ID. The error is ErrUnknown, or Misconfigured for the ID of a service account. Nothing is
// written.
func (r *Registry) Find(ctx context.Context, id string) (*Client, error) {
	if namespace, name, err := serviceaccount.SplitUsername(id); err == nil && r.Accounts != nil {
		return r.Accounts.find(ctx, namespace, name)
	}
	if id == "" || len(id) > maxID {
		return nil, ErrUnknown
	}
	object, err := r.Clients.Get(ctx, id)
	switch {
	case kerrors.IsNotFound(err):
		return nil, ErrUnknown
	case err != nil:
		return nil, fmt.Errorf("find OAuth client %q: %w", id, err)
	}
	return &Client{
		ID: object.Name, RedirectURIs: object.RedirectURIs, RespondWithChallenges: object.RespondWithChallenges,
		GrantMethod: object.GrantMethod, ScopeRestrictions: object.ScopeRestrictions,
		MaxAge: object.AccessTokenMaxAgeSeconds, InactivityTimeout: object.AccessTokenInactivityTimeoutSeconds,
		OptionalChallenge: object.Annotations[ChallengeAnnotation] == ChallengeOptional,
		secrets:           secretsOf(object),
	}, nil
}

// secretsOf returns the secrets of a client. The empty secret counts only if there is no other.
func secretsOf(object *oauthv1.OAuthClient) []string {
	secrets := append([]string{object.Secret}, object.AdditionalSecrets...)
	if secrets = slices.DeleteFunc(secrets, func(s string) bool { return s == "" }); len(secrets) == 0 {
		return []string{""}
	}
	return secrets
}

// maxID is the longest name of an object.
const maxID = 253
