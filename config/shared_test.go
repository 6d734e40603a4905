package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// masterWith returns the configuration of a host whose MasterConfig has the given settings.
func masterWith(t *testing.T, settings string) *Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "config-") // a short path, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := WriteDefaults(dir); err != nil {
		t.Fatal(err)
	}
	if settings != "" {
		content := "apiVersion: v1\nkind: MasterConfig\n" + settings
		if err := os.WriteFile(filepath.Join(dir, "master", "master-config.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDifferencesOfMastersAreNamed(t *testing.T) {
	first, err := masterWith(t, "").SharedSettings()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		settings string
		want     []string
	}{
		"another directory":             {"", nil},
		"a network":                     {"networkConfig: {serviceNetworkCIDR: 10.99.0.0/16}\nkubernetesMasterConfig: {servicesSubnet: 10.99.0.0/16}\n", []string{"kubernetesMasterConfig.servicesSubnet", "networkConfig.serviceNetworkCIDR"}},
		"addresses of one host":         {"etcdConfig: {peerAddress: 127.0.0.1:2380}\nslipway: {registry: {reserve: 1%}}\n", nil},
		"a setting without a default":   {"projectConfig: {projectRequestMessage: ask us}\n", []string{"projectConfig.projectRequestMessage"}},
		"an element of a list":          {"corsAllowedOrigins: [example]\n", []string{"corsAllowedOrigins"}},
		"the same as the default value": {"networkConfig: {serviceNetworkCIDR: 172.30.0.0/16}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := masterWith(t, tt.settings)
			own, err := c.SharedSettings()
			if err != nil {
				t.Fatal(err)
			}
			if got := Differences(first, own); !slices.Equal(got, tt.want) {
				t.Errorf("differences %q, want %q", got, tt.want)
			}
			if got, err := c.Contradictions(first); err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("contradictions %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestFirstStartConfigurationContradictsNoCluster(t *testing.T) {
	cluster, err := masterWith(t, "networkConfig: {serviceNetworkCIDR: 10.99.0.0/16}\n").SharedSettings()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := masterWith(t, "").Contradictions(cluster); err != nil || got != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
