package config

import (
	"net/url"
	"slices"
	"strings"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/slipway-platform/slipway/internal/ldap"
)

// oauth validates oauthConfig.
func (c *checker) oauth(m *MasterConfig) {
	oauth := m.OAuthConfig
	if oauth == nil {
		return
	}
	c.url("oauthConfig.masterPublicURL", oauth.MasterPublicURL)
	c.url("oauthConfig.assetPublicURL", oauth.AssetPublicURL)
	c.oneOf("oauthConfig.grantConfig.method", string(oauth.GrantConfig.Method), "auto", "prompt", "deny")
	c.oneOf("oauthConfig.grantConfig.serviceAccountMethod", string(oauth.GrantConfig.ServiceAccountMethod), "prompt", "deny")
	if age := oauth.SessionConfig.SessionMaxAgeSeconds; age < 1 {
		c.fail("oauthConfig.sessionConfig.sessionMaxAgeSeconds", "is %d, must be at least 1", age)
	}
	tokens := oauth.TokenConfig
	if tokens.AuthorizeTokenMaxAgeSeconds < 1 {
		c.fail("oauthConfig.tokenConfig.authorizeTokenMaxAgeSeconds", "is %d, must be at least 1", tokens.AuthorizeTokenMaxAgeSeconds)
	}
	c.notNegative("oauthConfig.tokenConfig.accessTokenMaxAgeSeconds", int(tokens.AccessTokenMaxAgeSeconds))
	if timeout := tokens.AccessTokenInactivityTimeoutSeconds; timeout != nil && *timeout != 0 && *timeout < 300 {
		c.fail("oauthConfig.tokenConfig.accessTokenInactivityTimeoutSeconds", "is %d, must be 0 or at least 300", *timeout)
	}
	names := map[string]bool{}
	for i, provider := range oauth.IdentityProviders {
		at := indexed("oauthConfig.identityProviders", i)
		if provider.Name == "" || strings.ContainsAny(provider.Name, ":/%") || provider.Name != strings.TrimSpace(provider.Name) {
			c.fail(at+".name", "is %q, must be a name without ':', '/' and '%%'; "+
				"it is the prefix of identity names", provider.Name)
		}
		if names[provider.Name] {
			c.fail(at+".name", "is %q, but another provider has this name; names must be unique", provider.Name)
		}
		names[provider.Name] = true
		c.oneOf(at+".mappingMethod", provider.MappingMethod, "claim", "lookup", "generate", "add")
		c.provider(at, provider)
	}
}

func (c *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail(key, "is %q, must be one of %s", value, strings.Join(allowed, ", "))
	}
}

// provider validates the block of one provider.
func (c *checker) provider(at string, provider legacyv1.IdentityProvider) {
	settings, unknown, err := providerSettings(provider)
	if err != nil {
		c.fail(at+".provider", "%v", err)
		return
	}
	for _, problem := range unknown {
		c.fail(at+".provider", "%v", problem)
	}
	prefix := at + ".provider."
	switch s := settings.(type) {
	case *legacyv1.HTPasswdPasswordIdentityProvider:
		c.required(prefix+"file", s.File)
	case *legacyv1.LDAPPasswordIdentityProvider:
		c.ldap(prefix, s)
	case *legacyv1.BasicAuthPasswordIdentityProvider:
		c.https(prefix+"url", s.URL)
	case *legacyv1.KeystonePasswordIdentityProvider:
		c.https(prefix+"url", s.URL)
		c.required(prefix+"domainName", s.DomainName)
	case *legacyv1.RequestHeaderIdentityProvider:
		c.requestHeader(prefix, provider, s)
	case *legacyv1.GitHubIdentityProvider:
		c.registration(at, provider, s.ClientID, s.ClientSecret)
		c.exclusive(prefix+"organizations", len(s.Organizations) > 0, prefix+"teams", len(s.Teams) > 0)
		for i, team := range s.Teams {
			if strings.Count(team, "/") != 1 {
				c.fail(indexed(prefix+"teams", i), "is %q, must be organization/team", team)
			}
		}
	case *legacyv1.GitLabIdentityProvider:
		c.registration(at, provider, s.ClientID, s.ClientSecret)
		c.https(prefix+"url", s.URL)
	case *legacyv1.GoogleIdentityProvider:
		c.registration(at, provider, s.ClientID, s.ClientSecret)
	case *OpenIDIdentityProvider:
		c.registration(at, provider, s.ClientID, s.ClientSecret)
		c.https(prefix+"urls.authorize", s.URLs.Authorize)
		c.https(prefix+"urls.token", s.URLs.Token)
		if s.URLs.UserInfo != "" {
			c.https(prefix+"urls.userInfo", s.URLs.UserInfo)
		}
		if s.Issuer != "" {
			c.https(prefix+"issuer", s.Issuer)
		}
		if len(s.Claims.ID) == 0 {
			c.fail(prefix+"claims.id", "is missing; specify the claim that contains the user's unique ID, usually [sub]")
		}
	}
}

func (c *checker) required(key, value string) {
	if value == "" {
		c.fail(key, "is missing")
	}
}

// https validates the URL of a server that receives secrets.
func (c *checker) https(key, value string) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		c.fail(key, "is %q, must be an address that begins with https://", value)
	}
}

// registration validates the settings that all providers with browser redirects share.
func (c *checker) registration(at string, provider legacyv1.IdentityProvider, id string,
	secret legacyv1.StringSource) {
	c.required(at+".provider.clientID", id)
	if secret == (legacyv1.StringSource{}) {
		c.fail(at+".provider.clientSecret", "is missing")
	}
	if provider.UseAsChallenger {
		c.fail(at+".challenge", "must be false: only a browser can log in with this provider")
	}
}

func (c *checker) ldap(prefix string, s *legacyv1.LDAPPasswordIdentityProvider) {
	server, _, _, err := ldap.ParseURL(s.URL)
	if err != nil {
		c.fail(prefix+"url", "is not valid: %v", err)
	}
	if s.Insecure && server.Scheme == "ldaps" {
		c.fail(prefix+"insecure", "must be false with ldaps://")
	}
	if s.Insecure && s.CA != "" {
		c.fail(prefix+"ca", "must be empty when insecure is true")
	}
	if hasPassword := s.BindPassword != (legacyv1.StringSource{}); (s.BindDN != "") != hasPassword {
		c.fail(prefix+"bindDN", "and bindPassword must be set together")
	}
	if len(s.Attributes.ID) == 0 {
		c.fail(prefix+"attributes.id", "is missing; specify the attribute that contains the user's unique ID, usually [dn]")
	}
}

func (c *checker) requestHeader(prefix string, provider legacyv1.IdentityProvider,
	s *legacyv1.RequestHeaderIdentityProvider) {
	if len(s.Headers) == 0 {
		c.fail(prefix+"headers", "is missing; list the headers that the proxy sets, such as [X-Remote-User]")
	}
	if s.ClientCA == "" {
		c.fail(prefix+"clientCA", "is missing; set it to the CA that issues the proxy's client certificate, because otherwise any client could set these headers")
	}
	for _, address := range []struct {
		key, value string
		isUsed     bool
	}{{"loginURL", s.LoginURL, provider.UseAsLogin}, {"challengeURL", s.ChallengeURL, provider.UseAsChallenger}} {
		switch {
		case address.value == "" && address.isUsed:
			c.fail(prefix+address.key, "is missing; set the URL to which clients that are not logged in are redirected")
		case address.value != "" && !strings.Contains(address.value, "${url}") && !strings.Contains(address.value, "${query}"):
			c.fail(prefix+address.key, "is %q, must contain ${url} or ${query}, so that clients return after the login", address.value)
		}
	}
}
