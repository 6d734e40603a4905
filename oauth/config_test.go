package oauth

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	oauthv1 "github.com/openshift/api/oauth/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/provider"
)

func oauthSettings(t *testing.T) *legacyv1.OAuthConfig {
	c := &legacyv1.OAuthConfig{SessionConfig: &legacyv1.SessionConfig{
		SessionSecretsFile: filepath.Join(t.TempDir(), "secrets.yaml"), SessionMaxAgeSeconds: 300, SessionName: "ssn",
	}}
	c.TokenConfig.AccessTokenMaxAgeSeconds, c.TokenConfig.AuthorizeTokenMaxAgeSeconds = 86400, 60
	return c
}

func TestServerConfiguration(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*legacyv1.OAuthConfig)
		ok     func(Config) bool
	}{
		{"session", func(*legacyv1.OAuthConfig) {}, func(c Config) bool {
			return c.SessionName == "ssn" && c.SessionMaxAge == 5*time.Minute && len(c.SessionSecrets) == 1
		}},
		{"lifetime of tokens", func(*legacyv1.OAuthConfig) {}, func(c Config) bool {
			return c.TokenMaxAge == 86400 && c.CodeMaxAge == 60 && c.TokenInactivityTimeout == 0
		}},
		{"inactivity timeout", func(c *legacyv1.OAuthConfig) { c.TokenConfig.AccessTokenInactivityTimeoutSeconds = ptr.To[int32](600) }, func(c Config) bool {
			return c.TokenInactivityTimeout == 600
		}},
		{"grants", func(c *legacyv1.OAuthConfig) {
			c.GrantConfig.Method, c.GrantConfig.ServiceAccountMethod = "auto", "prompt"
		}, func(c Config) bool {
			return c.GrantMethod == oauthv1.GrantHandlerAuto && c.ServiceAccountGrantMethod == oauthv1.GrantHandlerPrompt
		}},
		{"templates", func(c *legacyv1.OAuthConfig) {
			c.Templates = &legacyv1.OAuthTemplates{Login: "l", ProviderSelection: "p", Error: "e"}
		}, func(c Config) bool { return c.Templates == page.Templates{Login: "l", Providers: "p", Error: "e"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := oauthSettings(t)
			tt.change(c)
			if got, err := NewConfig(c, nil); err != nil || !tt.ok(got) {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

func TestConfigurationKeepsOrderOfProviders(t *testing.T) {
	named := func(name string) provider.Config {
		return provider.Config{IdentityProvider: legacyv1.IdentityProvider{Name: name}, Settings: &legacyv1.AllowAllPasswordIdentityProvider{}}
	}
	c, err := NewConfig(oauthSettings(t), []provider.Config{named("b"), named("a")})
	if err != nil || len(c.Providers) != 2 || c.Providers[0].Name != "b" || c.Providers[1].Name != "a" {
		t.Errorf("got %+v, error %v", c.Providers, err)
	}
}

func TestErrorsOfAllProvidersAreReported(t *testing.T) {
	missing := func(name string) provider.Config {
		return provider.Config{
			IdentityProvider: legacyv1.IdentityProvider{Name: name}, Settings: &legacyv1.HTPasswdPasswordIdentityProvider{File: "/nowhere/" + name},
		}
	}
	_, err := NewConfig(oauthSettings(t), []provider.Config{missing("one"), missing("two")})
	for _, name := range []string{"one", "two"} {
		if err == nil || !strings.Contains(err.Error(), `oauthConfig: identity provider "`+name+`": `) {
			t.Errorf("provider %s: got error %v", name, err)
		}
	}
}
