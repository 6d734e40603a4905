package config

import (
	"encoding/json"
	"fmt"
	"slices"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	strict "sigs.k8s.io/json"
)

// IdentityProvider is an identity provider with typed settings.
type IdentityProvider struct {
	legacyv1.IdentityProvider
	// Settings is a pointer to the type for the provider's kind, such as
	// *legacyv1.HTPasswdPasswordIdentityProvider. Its paths are absolute.
	Settings any
}

// IdentityProviders returns the identity providers in oauthConfig, in their configured order.
func (c *MasterConfig) IdentityProviders() []IdentityProvider {
	if c.OAuthConfig == nil {
		return nil
	}
	var list []IdentityProvider
	for _, provider := range c.OAuthConfig.IdentityProviders {
		settings, _, err := providerSettings(provider)
		if err == nil { // Load rejects invalid providers
			list = append(list, IdentityProvider{provider, settings})
		}
	}
	return list
}

// OpenIDIdentityProvider is OpenShift 3's type with one additional setting.
type OpenIDIdentityProvider struct {
	legacyv1.OpenIDIdentityProvider `json:",inline"`

	// Issuer is the server's identifier in ID tokens, such as
	// `https://login.example.com/realms/staff`. If Issuer is set, only tokens that are signed with
	// the issuer's published keys are valid. If it is empty, it is derived where possible.
	Issuer string `json:"issuer"`
}

// providerType returns empty settings for a provider kind. It returns nil if the kind is unknown.
func providerType(kind string) any {
	switch kind {
	case "AllowAllPasswordIdentityProvider":
		return &legacyv1.AllowAllPasswordIdentityProvider{}
	case "DenyAllPasswordIdentityProvider":
		return &legacyv1.DenyAllPasswordIdentityProvider{}
	case "HTPasswdPasswordIdentityProvider":
		return &legacyv1.HTPasswdPasswordIdentityProvider{}
	case "LDAPPasswordIdentityProvider":
		return &legacyv1.LDAPPasswordIdentityProvider{}
	case "BasicAuthPasswordIdentityProvider":
		return &legacyv1.BasicAuthPasswordIdentityProvider{}
	case "KeystonePasswordIdentityProvider":
		return &legacyv1.KeystonePasswordIdentityProvider{}
	case "RequestHeaderIdentityProvider":
		return &legacyv1.RequestHeaderIdentityProvider{}
	case "GitHubIdentityProvider":
		return &legacyv1.GitHubIdentityProvider{}
	case "GitLabIdentityProvider":
		return &legacyv1.GitLabIdentityProvider{}
	case "GoogleIdentityProvider":
		return &legacyv1.GoogleIdentityProvider{}
	case "OpenIDIdentityProvider":
		return &OpenIDIdentityProvider{}
	}
	return nil
}

// providerSettings decodes a provider's block. unknown contains the problems with individual keys.
func providerSettings(provider legacyv1.IdentityProvider) (settings any, unknown []error, err error) {
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(provider.Provider.Raw, &kind); err != nil {
		return nil, nil, fmt.Errorf("must be a mapping with apiVersion: v1 and a kind")
	}
	settings = providerType(kind.Kind)
	if settings == nil || kind.APIVersion != "v1" {
		return nil, nil, fmt.Errorf("has apiVersion %q and kind %q; "+
			"must be v1 and a kind such as HTPasswdPasswordIdentityProvider", kind.APIVersion, kind.Kind)
	}
	unknown, err = strict.UnmarshalStrict(provider.Provider.Raw, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("is not a valid %s", kind.Kind) // err could contain a secret
	}
	return settings, unknown, nil
}

// fileKeys lists the keys of provider settings that contain file names. secretKeys lists the keys
// of secrets. A secret can be stored in a file.
var (
	fileKeys   = []string{"file", "ca", "certFile", "keyFile", "clientCA"}
	secretKeys = []string{"bindPassword", "clientSecret"}
)

// resolveProviders converts the relative paths in the providers' settings to absolute paths. The
// relative paths are relative to folder.
func (c *MasterConfig) resolveProviders(folder string) {
	if c.OAuthConfig == nil {
		return
	}
	for i := range c.OAuthConfig.IdentityProviders {
		provider := &c.OAuthConfig.IdentityProviders[i]
		var block map[string]any
		if json.Unmarshal(provider.Provider.Raw, &block) != nil {
			continue // validate reports the problem
		}
		resolveBlock(folder, block, fileKeys...)
		for _, key := range secretKeys {
			if source, long := block[key].(map[string]any); long {
				resolveBlock(folder, source, fileKeys...)
			}
		}
		if raw, err := json.Marshal(block); err == nil {
			provider.Provider.Raw = raw
		}
	}
}

// resolveBlock converts the values of the given keys to absolute paths.
func resolveBlock(folder string, block map[string]any, keys ...string) {
	for _, key := range keys {
		if path, ok := block[key].(string); ok {
			resolve(folder, []*string{&path})
			block[key] = path
		}
	}
}

// DeveloperFile returns the path of the default provider's htpasswd file. On its first start, the
// host adds a user named `developer` to this file. DeveloperFile returns "" if oauthConfig
// configures other providers.
func (c *Config) DeveloperFile() string {
	path := usersFile(c.DataDir)
	for _, provider := range c.Master.IdentityProviders() {
		settings, ok := provider.Settings.(*legacyv1.HTPasswdPasswordIdentityProvider)
		if ok && settings.File == path {
			return path
		}
	}
	return ""
}

// HTPasswdFiles returns the paths of all htpasswd providers' files.
func (c *Config) HTPasswdFiles() (files []string) {
	for _, provider := range c.Master.IdentityProviders() {
		settings, ok := provider.Settings.(*legacyv1.HTPasswdPasswordIdentityProvider)
		if ok && !slices.Contains(files, settings.File) {
			files = append(files, settings.File)
		}
	}
	return files
}
