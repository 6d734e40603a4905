package config

import (
	"strings"
	"testing"
	"time"
)

func TestOutboundSettings(t *testing.T) {
	networks := func(c *Config) any {
		var texts []string
		for _, network := range c.Master.Slipway.Outbound.Networks() {
			texts = append(texts, network.String())
		}
		return texts
	}
	registries := func(c *Config) any { return c.Master.ImportRegistries() }
	checkSettings(t, masterKind, []settingTest{
		{"no network is allowed", "", networks, []string(nil)},
		{"all networks of the file are allowed", "slipway: {outbound: {allowedNetworks: [192.0.2.0/24, '2001:db8::/32']}}", networks, []string{"192.0.2.0/24", "2001:db8::/32"}},
		{"imports name no registry", "", registries, []string(nil)},
		{"registries with a wildcard are not listed",
			"imagePolicyConfig: {allowedRegistriesForImport: [{domainName: '*.example.com'}, {domainName: 'registry.example.com'}]}",
			registries, []string{"registry.example.com"}},
	})
}

func TestServiceAccountKeys(t *testing.T) {
	keys := func(c *Config) any {
		signing, verifying := c.Master.ServiceAccountKeys("own.key", "own.pub")
		return append([]string{"sign with " + signing}, verifying...)
	}
	checkSettings(t, masterKind, []settingTest{
		{"the host's key pair is the default", "", keys, []string{"sign with own.key", "own.pub"}},
		{"a former public key still verifies", "serviceAccountConfig: {publicKeyFiles: [/old.pub]}", keys,
			[]string{"sign with own.key", "own.pub", "/old.pub"}},
		{"a private key contains its public key", "serviceAccountConfig: {privateKeyFile: /a.key}", keys,
			[]string{"sign with /a.key", "/a.key"}},
		{"public keys of the configuration verify", "serviceAccountConfig: {privateKeyFile: /a.key, publicKeyFiles: [/a.pub, /old.pub]}", keys,
			[]string{"sign with /a.key", "/a.pub", "/old.pub"}},
	})
}

func TestPeriodOfRepairs(t *testing.T) {
	period := func(c *Config) any { return c.Node.SyncPeriod() }
	checkSettings(t, nodeKind, []settingTest{
		{"by default", "", period, 30 * time.Second},
		{"of the file", "iptablesSyncPeriod: 3s", period, 3 * time.Second},
	})
	if _, err := loadText(t, nodeKind, "iptablesSyncPeriod: soon"); err == nil || !strings.Contains(err.Error(), "iptablesSyncPeriod") {
		t.Errorf("a period that is no duration: %v", err)
	}
}
