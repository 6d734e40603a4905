// Package provider creates identity providers from the blocks in oauthConfig.identityProviders.
package provider

import (
	"net/http"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/internal/stringsource"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/anyone"
	"github.com/slipway-platform/slipway/oauth/idp/basicauth"
	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
	"github.com/slipway-platform/slipway/oauth/idp/keystone"
	"github.com/slipway-platform/slipway/oauth/idp/ldap"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
	"github.com/slipway-platform/slipway/oauth/idp/requestheader"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/mapping"
)

// Config is the configuration of an identity provider.
type Config struct {
	legacyv1.IdentityProvider
	// Settings is the `provider` block in the configuration: a pointer to a type in
	// legacyconfig/v1, or an *OpenID.
	Settings any
}

// OpenID is the `provider` block for an OpenID Connect provider.
type OpenID struct {
	legacyv1.OpenIDIdentityProvider
	// Issuer is the server's identifier in its ID tokens. See openid.Keys.
	Issuer string
}

// New creates an identity provider from its configuration.
func New(c Config) (login.Provider, error) {
	provider := login.Provider{
		Name: c.Name, Challenge: c.UseAsChallenger, Login: c.UseAsLogin, Mapping: mapping.Method(c.MappingMethod),
	}
	var err error
	switch s := c.Settings.(type) {
	case *legacyv1.AllowAllPasswordIdentityProvider:
		provider.Password = anyone.Allow{}
	case *legacyv1.DenyAllPasswordIdentityProvider:
		provider.Password = anyone.Deny{}
	case *legacyv1.HTPasswdPasswordIdentityProvider:
		file := htpasswd.New(s.File)
		provider.Password, err = file, file.Check()
	case *legacyv1.LDAPPasswordIdentityProvider:
		provider.Password, err = newLDAP(s)
	case *legacyv1.BasicAuthPasswordIdentityProvider:
		var client *http.Client
		client, err = remoteClient(s.RemoteConnectionInfo)
		provider.Password = &basicauth.Provider{URL: s.URL, Client: client}
	case *legacyv1.KeystonePasswordIdentityProvider:
		var client *http.Client
		client, err = remoteClient(s.RemoteConnectionInfo)
		provider.Password = &keystone.Provider{URL: s.URL, Domain: s.DomainName, UseID: s.UseKeystoneIdentity, Client: client}
	case *legacyv1.RequestHeaderIdentityProvider:
		provider.Request, err = newRequestHeader(s)
	default:
		provider.Redirect, err = newRedirect(c.Settings)
	}
	return provider, err
}

func remoteClient(c legacyv1.RemoteConnectionInfo) (*http.Client, error) {
	return remote.Client(remote.TLS{CAFile: c.CA, CertFile: c.CertFile, KeyFile: c.KeyFile})
}

func newLDAP(s *legacyv1.LDAPPasswordIdentityProvider) (idp.Password, error) {
	password, err := stringsource.Read(s.BindPassword)
	if err != nil {
		return nil, err
	}
	provider, err := ldap.New(s.URL, s.BindDN, password)
	if err != nil {
		return nil, err
	}
	if provider.Server.TLS, err = remote.Config(remote.TLS{CAFile: s.CA}); err != nil {
		return nil, err
	}
	provider.Server.Insecure = s.Insecure
	provider.ID, provider.PreferredUserName = s.Attributes.ID, s.Attributes.PreferredUsername
	provider.Name, provider.Email = s.Attributes.Name, s.Attributes.Email
	return provider, nil
}

func newRequestHeader(s *legacyv1.RequestHeaderIdentityProvider) (idp.Request, error) {
	authorities, err := remote.Authorities(s.ClientCA)
	if err != nil {
		return nil, err
	}
	return &requestheader.Provider{
		Login: s.LoginURL, Challenge: s.ChallengeURL, Authorities: authorities, CommonNames: s.ClientCommonNames,
		Headers: s.Headers, PreferredUserNameHeaders: s.PreferredUsernameHeaders, NameHeaders: s.NameHeaders, EmailHeaders: s.EmailHeaders,
	}, nil
}
