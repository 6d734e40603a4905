package controlplane

import (
	"log/slog"
	"os"
	"path/filepath"

	groupoauth "github.com/slipway-platform/slipway/apigroup/oauth"
	"github.com/slipway-platform/slipway/apigroup/user"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/console"
	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth"
	"github.com/slipway-platform/slipway/oauth/authorize"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/provider"
)

// userFeatures returns the user and token API groups. It also returns the OAuth server with the web
// console, unless the configuration specifies a different OAuth server.
func (h *Host) userFeatures() ([]apiserver.Feature, []reload.Adjustment, error) {
	features := []apiserver.Feature{user.Feature(), groupoauth.Feature()}
	if h.Master.OAuthConfig == nil {
		return features, nil, nil
	}
	settings, err := h.oauthConfig(h.Config)
	if err != nil {
		return nil, nil, err
	}
	if settings.Metrics, err = login.NewMetrics(); err != nil {
		return nil, nil, err
	}
	settings.Throttle = throttle.New()
	settings.Throttle.Servers = h.countMasters
	server := oauth.New(settings, func(err error) { slog.Warn("login failed", "error", err) })
	adjustment := reload.Adjustment{
		Keys: []string{
			"oauthConfig.identityProviders", "oauthConfig.alwaysShowProviderSelection", "oauthConfig.grantConfig",
			"oauthConfig.sessionConfig", "oauthConfig.tokenConfig", "oauthConfig.templates",
		},
		Prepare: func(next *config.Config) (func(), error) {
			if next.Master.OAuthConfig == nil {
				return func() {}, nil // the server stops at the next restart
			}
			settings, err := h.oauthConfig(next)
			if err != nil {
				return nil, err
			}
			return server.Prepare(settings)
		},
	}
	console := console.Feature(console.Config{
		PublicURL: settings.PublicURL, ClientID: client.WebConsole, AuthorizePath: authorize.Path, TokenPath: oauth.TokenPath, Sessions: server,
		Downloads: h.clientDir(), Report: func(err error) { slog.Warn("request to the web console failed", "error", err) },
	})
	return append(features, server.Feature(), console), []reload.Adjustment{adjustment}, nil
}

// oauthConfig returns the settings for the OAuth server in a configuration.
func (h *Host) oauthConfig(from *config.Config) (oauth.Config, error) {
	var providers []provider.Config
	for _, p := range from.Master.IdentityProviders() {
		if s, ok := p.Settings.(*config.OpenIDIdentityProvider); ok {
			p.Settings = &provider.OpenID{OpenIDIdentityProvider: s.OpenIDIdentityProvider, Issuer: s.Issuer}
		}
		providers = append(providers, provider.Config(p))
	}
	settings, err := oauth.NewConfig(from.Master.OAuthConfig, providers)
	settings.PublicURL, settings.SeveralServers = h.PublicURL(), h.SeveralMasters()
	return settings, err
}

// clientDir returns the directory of the running program, which contains the clients that `make
// oc-all` builds. It returns "" if the directory is unknown.
func (h *Host) clientDir() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(program)
}
