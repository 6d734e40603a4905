package platform

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	oauthv1 "github.com/openshift/api/oauth/v1"

	groupoauth "github.com/slipway-platform/slipway/apigroup/oauth"
	"github.com/slipway-platform/slipway/apigroup/user"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/stringsource"
	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/idp/anyone"
	"github.com/slipway-platform/slipway/oauth/idp/basicauth"
	"github.com/slipway-platform/slipway/oauth/idp/external"
	"github.com/slipway-platform/slipway/oauth/idp/github"
	"github.com/slipway-platform/slipway/oauth/idp/gitlab"
	"github.com/slipway-platform/slipway/oauth/idp/google"
	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
	"github.com/slipway-platform/slipway/oauth/idp/keystone"
	"github.com/slipway-platform/slipway/oauth/idp/ldap"
	"github.com/slipway-platform/slipway/oauth/idp/openid"
	"github.com/slipway-platform/slipway/oauth/idp/remote"
	"github.com/slipway-platform/slipway/oauth/idp/requestheader"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
)

// Who may log in: users, the OAuth server and its identity providers, made from the configuration.

// identityFeatures are what the API server serves for users and tokens; the OAuth server is among them unless another one is configured.
func (h *host) identityFeatures() ([]apiserver.Feature, error) {
	features := []apiserver.Feature{user.Feature(), groupoauth.Feature()}
	if h.Master.OAuthConfig == nil {
		return features, nil
	}
	settings, err := h.oauth(h.Config)
	if err != nil {
		return nil, err
	}
	if settings.Metrics, err = login.NewMetrics(); err != nil {
		return nil, err
	}
	settings.Throttle = throttle.New()
	server := oauth.New(settings, func(err error) { slog.Warn("login", "error", err) })
	h.adjust(func(next *config.Config) (func(), error) {
		if next.Master.OAuthConfig == nil {
			return func() {}, nil // only a restart ends the server
		}
		settings, err := h.oauth(next)
		if err != nil {
			return nil, err
		}
		return server.Prepare(settings)
	}, "oauthConfig.identityProviders", "oauthConfig.alwaysShowProviderSelection", "oauthConfig.grantConfig", "oauthConfig.sessionConfig",
		"oauthConfig.tokenConfig", "oauthConfig.templates")
	return append(features, server.Feature()), nil
}

// publicURL is the API server's address for browsers and clients.
func (h *host) publicURL() string {
	if configured := h.Master.OAuthConfig.MasterPublicURL; configured != "" {
		return strings.TrimRight(configured, "/")
	}
	_, port := h.Master.APIAddress()
	return "https://" + net.JoinHostPort(h.address.String(), strconv.Itoa(port))
}

// oauth is what the OAuth server is told by a configuration.
func (h *host) oauth(from *config.Config) (oauth.Config, error) {
	c := from.Master.OAuthConfig
	secrets, err := session.EnsureSecrets(c.SessionConfig.SessionSecretsFile)
	if err != nil {
		return oauth.Config{}, err
	}
	settings := oauth.Config{
		PublicURL: h.publicURL(), ConsoleURL: c.AssetPublicURL, AlwaysShowProviderSelection: c.AlwaysShowProviderSelection,
		GrantMethod:               oauthv1.GrantHandlerType(c.GrantConfig.Method),
		ServiceAccountGrantMethod: oauthv1.GrantHandlerType(c.GrantConfig.ServiceAccountMethod),
		SessionName:               c.SessionConfig.SessionName,
		SessionMaxAge:             time.Duration(c.SessionConfig.SessionMaxAgeSeconds) * time.Second,
		SessionSecrets:            secrets,
		TokenMaxAge:               c.TokenConfig.AccessTokenMaxAgeSeconds,
		CodeMaxAge:                c.TokenConfig.AuthorizeTokenMaxAgeSeconds,
	}
	if timeout := c.TokenConfig.AccessTokenInactivityTimeoutSeconds; timeout != nil {
		settings.TokenInactivityTimeout = *timeout
	}
	if t := c.Templates; t != nil {
		settings.Templates = page.Templates{Login: t.Login, Providers: t.ProviderSelection, Error: t.Error}
	}
	var problems []error
	for _, configured := range from.Master.IdentityProviders() {
		provider, err := identityProvider(configured)
		if err != nil {
			problems = append(problems, fmt.Errorf("oauthConfig: identity provider %q: %w", configured.Name, err))
			continue
		}
		settings.Providers = append(settings.Providers, provider)
	}
	return settings, errors.Join(problems...)
}

// identityProvider makes a provider of its settings.
func identityProvider(c config.IdentityProvider) (login.Provider, error) {
	provider := login.Provider{Name: c.Name, Challenge: c.UseAsChallenger, Login: c.UseAsLogin, Mapping: mapping.Method(c.MappingMethod)}
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
		provider.Password, err = ldapProvider(s)
	case *legacyv1.BasicAuthPasswordIdentityProvider:
		var client *http.Client
		client, err = remote.Client(remote.TLS{CAFile: s.CA, CertFile: s.CertFile, KeyFile: s.KeyFile})
		provider.Password = &basicauth.Provider{URL: s.URL, Client: client}
	case *legacyv1.KeystonePasswordIdentityProvider:
		var client *http.Client
		client, err = remote.Client(remote.TLS{CAFile: s.CA, CertFile: s.CertFile, KeyFile: s.KeyFile})
		provider.Password = &keystone.Provider{URL: s.URL, Domain: s.DomainName, UseID: s.UseKeystoneIdentity, Client: client}
	case *legacyv1.RequestHeaderIdentityProvider:
		provider.Request, err = requestHeaderProvider(s)
	default:
		provider.Redirect, err = redirectProvider(c.Settings)
	}
	return provider, err
}

func ldapProvider(s *legacyv1.LDAPPasswordIdentityProvider) (idp.Password, error) {
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
	a := s.Attributes
	provider.ID, provider.PreferredUserName, provider.Name, provider.Email = a.ID, a.PreferredUsername, a.Name, a.Email
	return provider, nil
}

func requestHeaderProvider(s *legacyv1.RequestHeaderIdentityProvider) (idp.Request, error) {
	authorities, err := remote.Authorities(s.ClientCA)
	if err != nil {
		return nil, err
	}
	return &requestheader.Provider{
		Login: s.LoginURL, Challenge: s.ChallengeURL, Authorities: authorities, CommonNames: s.ClientCommonNames,
		Headers: s.Headers, PreferredUserNameHeaders: s.PreferredUsernameHeaders, NameHeaders: s.NameHeaders, EmailHeaders: s.EmailHeaders,
	}, nil
}

// redirectProvider makes a provider that browsers are sent to.
func redirectProvider(settings any) (*external.Provider, error) {
	connect := func(ca string, source legacyv1.StringSource) (*http.Client, string, error) {
		secret, err := stringsource.Read(source)
		if err != nil {
			return nil, "", err
		}
		client, err := remote.Client(remote.TLS{CAFile: ca})
		return client, secret, err
	}
	switch s := settings.(type) {
	case *legacyv1.GitHubIdentityProvider:
		client, secret, err := connect(s.CA, s.ClientSecret)
		return github.New(github.Settings{
			ClientID: s.ClientID, ClientSecret: secret, Organizations: s.Organizations, Teams: s.Teams, Host: s.Hostname, Client: client,
		}), err
	case *legacyv1.GitLabIdentityProvider:
		client, secret, err := connect(s.CA, s.ClientSecret)
		legacy := s.Legacy != nil && *s.Legacy
		return gitlab.New(gitlab.Settings{URL: s.URL, ClientID: s.ClientID, ClientSecret: secret, Legacy: legacy, Client: client}), err
	case *legacyv1.GoogleIdentityProvider:
		client, secret, err := connect("", s.ClientSecret)
		return google.New(google.Settings{ClientID: s.ClientID, ClientSecret: secret, HostedDomain: s.HostedDomain, Client: client}), err
	case *config.OpenIDIdentityProvider:
		client, secret, err := connect(s.CA, s.ClientSecret)
		return openid.New(openid.Settings{
			ClientID: s.ClientID, ClientSecret: secret,
			AuthorizeURL: s.URLs.Authorize, TokenURL: s.URLs.Token, UserInfoURL: s.URLs.UserInfo,
			Scopes: s.ExtraScopes, Parameters: s.ExtraAuthorizeParameters,
			ID: s.Claims.ID, PreferredUserName: s.Claims.PreferredUsername, Name: s.Claims.Name, Email: s.Claims.Email, Client: client,
			Keys: openid.Keys{Issuer: s.Issuer},
		}), err
	}
	return nil, fmt.Errorf("%T is no identity provider", settings)
}

// developer is the user of the first start.
const developer = "developer"

// developerPassword is the file that keeps the developer's first password.
func (h *host) developerPassword() string { return h.path("developer.password") }

// ensureDeveloper makes the user `developer` with a random password at the first start, unless the configuration says who may log in. A file
// of users that is there stays as it is.
func (h *host) ensureDeveloper() error {
	users := h.DeveloperFile()
	if users == "" {
		return nil
	}
	if _, err := os.Stat(users); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	password, err := os.ReadFile(h.developerPassword())
	if errors.Is(err, os.ErrNotExist) {
		text := strings.ToLower(rand.Text())
		password = []byte(strings.Join([]string{text[:5], text[5:10], text[10:15], text[15:20]}, "-"))
		err = atomicfile.Write(h.developerPassword(), append(password, '\n'), 0o600)
	}
	if err == nil {
		err = htpasswd.Set(users, developer, strings.TrimSpace(string(password)))
	}
	if err != nil {
		return fmt.Errorf("make user %q: %w", developer, err)
	}
	return nil
}
