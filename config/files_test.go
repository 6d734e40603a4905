package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFilesInSettingsAreListed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	for _, name := range []string{"users", "ldap.crt", "ldap.password"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := os.WriteFile(path, []byte(`
apiVersion: v1
kind: MasterConfig
auditConfig: {enabled: true, auditFilePath: audit.log}
oauthConfig:
  identityProviders:
  - name: users
    provider: {apiVersion: v1, kind: HTPasswdPasswordIdentityProvider, file: users}
  - name: ldap
    provider:
      apiVersion: v1
      kind: LDAPPasswordIdentityProvider
      url: ldaps://ldap.example.com/dc=example
      ca: ldap.crt
      bindDN: cn=slipway
      bindPassword: {file: ldap.password}
      attributes: {id: [dn]}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadAnyway(dir, path)
	if c == nil {
		t.Fatal(err)
	}
	files := c.Files()
	for _, name := range []string{"users", "ldap.crt", "ldap.password"} {
		if !slices.Contains(files, filepath.Join(dir, name)) {
			t.Errorf("%s is not in %q", name, files)
		}
	}
	if slices.Contains(files, filepath.Join(dir, "audit.log")) {
		t.Errorf("the audit log is in %q", files)
	}
}
