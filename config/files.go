package config

import (
	"encoding/json"
	"slices"
)

// Files returns the absolute paths of the files and directories that the configuration refers to:
// certificates, keys, users, policies and pages. It does not return the audit log. The files do not
// have to exist.
func (c *Config) Files() []string {
	var files []string
	add := func(path string) {
		if path != "" && path != c.Master.AuditConfig.AuditFilePath && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	for _, path := range append(c.Master.paths(), c.Node.paths()...) {
		add(*path)
	}
	if c.Master.OAuthConfig == nil {
		return files
	}
	for _, provider := range c.Master.OAuthConfig.IdentityProviders {
		var block map[string]any
		if json.Unmarshal(provider.Provider.Raw, &block) != nil {
			continue // Load rejects the invalid block
		}
		blocks := []map[string]any{block}
		for _, key := range secretKeys {
			if source, long := block[key].(map[string]any); long {
				blocks = append(blocks, source)
			}
		}
		for _, block := range blocks {
			for _, key := range fileKeys {
				if path, ok := block[key].(string); ok {
					add(path)
				}
			}
		}
	}
	return files
}
