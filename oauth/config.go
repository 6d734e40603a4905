package oauth

import (
	"errors"
	"fmt"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/provider"
	"github.com/slipway-platform/slipway/oauth/session"
)

// NewConfig returns the configuration for a server with the settings of oauthConfig and the given
// identity providers. If the session secrets file is missing, NewConfig creates it. It reports all
// providers' errors together. The caller sets PublicURL, Metrics and Throttle.
func NewConfig(c *legacyv1.OAuthConfig, providers []provider.Config) (Config, error) {
	secrets, err := session.EnsureSecrets(c.SessionConfig.SessionSecretsFile)
	if err != nil {
		return Config{}, err
	}
	settings := Config{
		ConsoleURL: c.AssetPublicURL, AlwaysShowProviderSelection: c.AlwaysShowProviderSelection,
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
	var errs []error
	for _, configured := range providers {
		p, err := provider.New(configured)
		if err != nil {
			errs = append(errs, fmt.Errorf("oauthConfig: identity provider %q: %w", configured.Name, err))
			continue
		}
		settings.Providers = append(settings.Providers, p)
	}
	return settings, errors.Join(errs...)
}
