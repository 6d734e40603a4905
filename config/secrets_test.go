package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestViewHidesSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, `
apiVersion: v1
kind: MasterConfig
admissionConfig:
  pluginConfig:
    BuildDefaults:
      configuration:
        apiVersion: v1
        kind: BuildDefaultsConfig
        gitHTTPProxy: http://bob:topsecret1@proxy:3128
        env:
        - {name: DATABASE_PASSWORD, value: topsecret2}
        - {name: HTTPS_PROXY, value: "http://bob:topsecret3@proxy:3128"}
        - {name: COLOUR, value: green}
---
apiVersion: v1
kind: NodeConfig
slipway:
  router:
    environment:
      STATS_PASSWORD: topsecret4
      DEFAULT_CERTIFICATE: "-----BEGIN RSA PRIVATE KEY-----\ntopsecret5\n-----END RSA PRIVATE KEY-----\n"
`)
	c, err := LoadAnyway(filepath.Join(t.TempDir(), "data"), file)
	if c == nil {
		t.Fatal(err)
	}
	view, err := c.View()
	if err != nil {
		t.Fatal(err)
	}
	text := string(view)
	if strings.Contains(text, "topsecret") || strings.Count(text, "<redacted>") != 5 || !strings.Contains(text, "green") {
		t.Errorf("the view is:\n%s", text)
	}
}

func TestProblemsShowNoPasswords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, `
apiVersion: v1
kind: MasterConfig
masterPublicURL: http://bob:topsecret@master.example.com
oauthConfig:
  identityProviders:
  - name: remote
    challenge: true
    provider: {apiVersion: v1, kind: BasicAuthPasswordIdentityProvider, url: "http://bob:top%zzsecret@remote.example.com"}
`)
	_, err := Load(filepath.Join(t.TempDir(), "data"), file)
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Count(err.Error(), "<redacted>") < 2 {
		t.Errorf("the problems are:\n%v", err)
	}
}
