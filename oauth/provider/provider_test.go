package provider

import (
	"testing"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

func TestEachKindHasFlow(t *testing.T) {
	secret := legacyv1.StringSource{StringSourceSpec: legacyv1.StringSourceSpec{Value: "secret"}}
	tests := []struct {
		name     string
		settings any
		redirect bool
	}{
		{"allow all", &legacyv1.AllowAllPasswordIdentityProvider{}, false},
		{"deny all", &legacyv1.DenyAllPasswordIdentityProvider{}, false},
		{"basic", &legacyv1.BasicAuthPasswordIdentityProvider{}, false},
		{"keystone", &legacyv1.KeystonePasswordIdentityProvider{}, false},
		{"github", &legacyv1.GitHubIdentityProvider{ClientSecret: secret}, true},
		{"gitlab", &legacyv1.GitLabIdentityProvider{ClientSecret: secret}, true},
		{"google", &legacyv1.GoogleIdentityProvider{ClientSecret: secret}, true},
		{"openid", &OpenID{OpenIDIdentityProvider: legacyv1.OpenIDIdentityProvider{ClientSecret: secret}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			provider, err := New(Config{legacyv1.IdentityProvider{Name: "p", MappingMethod: "claim", UseAsLogin: true}, tt.settings})
			if err != nil {
				t.Fatal(err)
			}
			if (provider.Redirect != nil) != tt.redirect || (provider.Password != nil) == tt.redirect || provider.Name != "p" || !provider.Login {
				t.Errorf("got %+v", provider)
			}
		})
	}
}

func TestUnknownKindAndMissingFilesAreErrors(t *testing.T) {
	for name, settings := range map[string]any{
		"unknown kind":        &struct{}{},
		"missing CA":          &legacyv1.GitHubIdentityProvider{CA: "/absent"},
		"missing client CA":   &legacyv1.RequestHeaderIdentityProvider{ClientCA: "/absent"},
		"missing user file":   &legacyv1.HTPasswdPasswordIdentityProvider{File: "/absent/users"},
		"missing secret":      &legacyv1.GoogleIdentityProvider{ClientSecret: legacyv1.StringSource{StringSourceSpec: legacyv1.StringSourceSpec{File: "/absent"}}},
		"invalid LDAP URL":    &legacyv1.LDAPPasswordIdentityProvider{URL: "http://x"},
		"missing Keystone CA": &legacyv1.KeystonePasswordIdentityProvider{RemoteConnectionInfo: legacyv1.RemoteConnectionInfo{CA: "/absent"}},
	} {
		if _, err := New(Config{Settings: settings}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
