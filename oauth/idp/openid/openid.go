// Package openid implements OpenIDIdentityProvider: any OpenID Connect server, with the
// authorization code flow.
//
// An ID token is valid if its issuer signed it for this client, it has not expired, and it contains
// the nonce of this browser's login. OpenShift 3 does not configure an issuer. Keys describes how
// the issuer is derived, and verify describes the checks if the issuer cannot be derived.
package openid

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/external"
)

// Settings describes one server.
type Settings struct {
	ClientID, ClientSecret string
	// AuthorizeURL and TokenURL are the server's endpoints. UserInfoURL, which is optional,
	// provides more claims.
	AuthorizeURL, TokenURL, UserInfoURL string
	// Scopes contains the scopes to request in addition to `openid`. Parameters is added to the
	// query of AuthorizeURL.
	Scopes     []string
	Parameters map[string]string
	// ID lists the claims that can contain the unique name. The provider uses the first claim that
	// a token has. The other fields work in the same way.
	ID, PreferredUserName, Name, Email []string
	// Check, if set, rejects users by their claims.
	Check func(claims map[string]any) error
	// Keys defines the issuer of ID tokens. It is optional.
	Keys Keys
	// Client sends requests to the server.
	Client *http.Client
}

// New returns the provider.
func New(s Settings) *external.Provider {
	scopes := []string{"openid"}
	for _, scope := range s.Scopes {
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	tokens := &verifier{settings: s}
	return &external.Provider{
		Nonce: true, ClientID: s.ClientID, ClientSecret: s.ClientSecret, AuthorizeURL: s.AuthorizeURL, TokenURL: s.TokenURL,
		Scopes: scopes, Parameters: s.Parameters, Client: s.Client,
		Identify: func(ctx context.Context, api *external.API, token *oauth2.Token) (*idp.Identity, error) {
			return s.identify(ctx, api, token, tokens)
		},
	}
}

func (s Settings) identify(ctx context.Context, api *external.API, token *oauth2.Token,
	tokens *verifier) (*idp.Identity, error) {
	text, _ := token.Extra("id_token").(string)
	claims, err := tokens.verify(ctx, text)
	if err != nil {
		return nil, err
	}
	if err := check(claims, s.ClientID, time.Now()); err != nil {
		return nil, err
	}
	if nonce, _ := claims["nonce"].(string); nonce == "" || nonce != api.Nonce {
		return nil, errors.New("the ID token of the identity provider belongs to another login: its nonce is wrong")
	}
	if s.UserInfoURL != "" {
		if err := s.more(ctx, api, claims); err != nil {
			return nil, err
		}
	}
	if s.Check != nil {
		if err := s.Check(claims); err != nil {
			return nil, err
		}
	}
	return &idp.Identity{
		UserName:          first(claims, s.ID),
		PreferredUserName: first(claims, s.PreferredUserName),
		Name:              first(claims, s.Name),
		Email:             first(claims, s.Email),
	}, nil
}

// more adds the claims from the user information endpoint. They must be for the same user as the ID
// token (OpenID Connect Core 1.0, section 5.3.2).
func (s Settings) more(ctx context.Context, api *external.API, claims map[string]any) error {
	var info map[string]any
	if _, err := api.Get(ctx, s.UserInfoURL, &info); err != nil {
		return err
	}
	if info["sub"] != claims["sub"] {
		return errors.New("the user information of the identity provider belongs to a different user than the ID token")
	}
	maps.Copy(claims, info)
	return nil
}

// skew is the maximum tolerated difference between the server's clock and this host's clock.
const skew = time.Minute

// check rejects an ID token that was issued for another client, has expired or does not identify a
// user.
func check(claims map[string]any, client string, now time.Time) error {
	audience, _ := claims["aud"].([]any)
	if claims["aud"] != client && !slices.Contains(audience, any(client)) {
		return errors.New("the ID token of the identity provider is for another client")
	}
	if party, ok := claims["azp"]; ok && party != client {
		return errors.New("the ID token of the identity provider is for another client")
	}
	expires, ok := claims["exp"].(float64)
	if !ok || now.After(time.Unix(int64(expires), 0).Add(skew)) {
		return errors.New("the ID token of the identity provider has expired")
	}
	if subject, _ := claims["sub"].(string); subject == "" {
		return errors.New("the ID token of the identity provider has no user: sub is missing")
	}
	return nil
}

// first returns the first claim that is a non-empty string.
func first(claims map[string]any, names []string) string {
	for _, name := range names {
		if text, ok := claims[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}
