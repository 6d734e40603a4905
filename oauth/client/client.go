// Package client finds OAuth clients: OAuthClient objects and service accounts.
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/slipway-platform/slipway/oauth/store"
)

// ErrUnknown means that no client has the requested ID.
var ErrUnknown = errors.New("the client does not exist")

// Names of the OAuth clients that every cluster has.
const (
	// WebConsole requests tokens for the web console.
	WebConsole = "openshift-web-console"
	// Browser requests tokens at /oauth/token/request for users to copy.
	Browser = "openshift-browser-client"
	// Challenging requests tokens for programs that support WWW-Authenticate, such as `oc login`.
	Challenging = "openshift-challenging-client"
)

// Client is an OAuth client.
type Client struct {
	// ID is the client_id.
	ID string
	// RedirectURIs are the URIs that responses can be sent to.
	RedirectURIs []string
	// GrantMethod applies if a user has not granted the requested scopes. It defaults to the
	// configured grant method.
	GrantMethod oauthv1.GrantHandlerType
	// ScopeRestrictions limits the scopes that the client can request. Without restrictions, the
	// client can request all scopes.
	ScopeRestrictions []oauthv1.ScopeRestriction
	// MaxAge and InactivityTimeout apply to the client's tokens, in seconds. nil means the
	// configured value, and 0 means no limit.
	MaxAge, InactivityTimeout *int32
	// OptionalChallenge allows a public client to obtain codes without a code challenge, or with
	// the plain challenge method.
	OptionalChallenge bool
	// Account is the service account, or nil if the client is an OAuthClient.
	Account *corev1.ServiceAccount

	// secrets contains the secrets of an OAuthClient.
	secrets []string
}

// ChallengeAnnotation is an annotation on OAuthClient objects. The value ChallengeOptional sets
// OptionalChallenge. All other values mean ChallengeRequired.
const (
	ChallengeAnnotation = "oauth.slipway.io/code-challenge"
	ChallengeOptional   = "optional"
	ChallengeRequired   = "required"
)

// Public reports whether the client has no secret, so that any program can impersonate the client.
func (c *Client) Public() bool { return c.Account == nil && slices.Contains(c.secrets, "") }

// verify reports whether a client secret is valid. The empty secret is valid for a client without
// secrets.
func (c *Client) verify(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	count := 0
	for _, value := range c.secrets {
		hash := sha256.Sum256([]byte(value))
		count |= subtle.ConstantTimeCompare(sum[:], hash[:])
	}
	return count == 1
}

// Registry finds clients.
type Registry struct {
	// Clients are the OAuthClient objects.
	Clients store.Objects[*oauthv1.OAuthClient]
	// Accounts finds service accounts. It is optional.
	Accounts *Accounts
}

// Authenticate returns the client with the given ID if the secret is correct, and ErrUnknown
// otherwise. Its duration does not depend on whether the client exists. For a service account,
// every API token of the account is a valid secret.
func (r *Registry) Authenticate(ctx context.Context, id, secret string) (*Client, error) {
	if _, _, err := serviceaccount.SplitUsername(id); err == nil && r.Accounts != nil {
		return r.authenticateAccount(ctx, id, secret)
	}
	c, err := r.Find(ctx, id)
	if errors.Is(err, ErrUnknown) {
		c = &Client{secrets: []string{rand.Text()}} // a random secret, which no request can contain
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

// Find returns the client with the given ID. If the client does not exist, the error is ErrUnknown,
// or Misconfigured for a service account's ID. Find writes nothing.
func (r *Registry) Find(ctx context.Context, id string) (*Client, error) {
	if namespace, name, err := serviceaccount.SplitUsername(id); err == nil && r.Accounts != nil {
		return r.Accounts.find(ctx, namespace, name)
	}
	if id == "" || len(id) > maxID {
		return nil, ErrUnknown
	}
	object, err := r.Clients.Get(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrUnknown
	case err != nil:
		return nil, fmt.Errorf("find OAuth client %q: %w", id, err)
	}
	return &Client{
		ID: object.Name, RedirectURIs: object.RedirectURIs,
		GrantMethod: object.GrantMethod, ScopeRestrictions: object.ScopeRestrictions,
		MaxAge: object.AccessTokenMaxAgeSeconds, InactivityTimeout: object.AccessTokenInactivityTimeoutSeconds,
		OptionalChallenge: object.Annotations[ChallengeAnnotation] == ChallengeOptional,
		secrets:           secretsOf(object),
	}, nil
}

// secretsOf returns a client's secrets. For a client without secrets, secretsOf returns only the
// empty secret.
func secretsOf(object *oauthv1.OAuthClient) []string {
	secrets := append([]string{object.Secret}, object.AdditionalSecrets...)
	if secrets = slices.DeleteFunc(secrets, func(s string) bool { return s == "" }); len(secrets) == 0 {
		return []string{""}
	}
	return secrets
}

// maxID is the maximum length of an object's name, in bytes.
const maxID = 253
