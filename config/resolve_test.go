package config

import (
	"maps"
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

func TestAuditFileIsEmptyIfAuditingIsDisabled(t *testing.T) {
	file := func(c *Config) any { return c.Master.AuditFile() }
	checkSettings(t, masterKind, []settingTest{
		{"default", "", file, "/data/log/audit.log"},
		{"enabled", "auditConfig: {enabled: true, auditFilePath: /log/a}", file, "/log/a"},
		{"disabled", "auditConfig: {enabled: false, auditFilePath: /log/a}", file, ""},
	})
}

func TestBundlesAreOfferedFromProjectsAndRegistries(t *testing.T) {
	offers := func(c *Config) any { return c.Master.OffersBundles() }
	checkSettings(t, masterKind, []settingTest{
		{"project openshift by default", "", offers, true},
		{"no projects", "ansibleServiceBrokerConfig: {namespaces: []}", offers, false},
		{"only a registry", "ansibleServiceBrokerConfig: {namespaces: [], registries: [" +
			"{name: hub, type: openshift, url: 'https://registry.example.com', images: [team/db-apb]}]}", offers, true},
	})
}

func TestPodsConnectToPortsOfHost(t *testing.T) {
	master := func(c *Config) any { return c.PortsForPods(true) }
	node := func(c *Config) any { return c.PortsForPods(false) }
	checkSettings(t, masterKind, []settingTest{
		{"master", "", master, []int{10250, 8443, 5000}},
		{"node of another master", "", node, []int{10250}},
		{"other ports", "servingInfo: {bindAddress: '0.0.0.0:443'}\nslipway: {registry: {bindAddress: '0.0.0.0:5001'}}", master, []int{10250, 443, 5001}},
	})
}

func TestRouterListensOnAddressFamiliesOfPods(t *testing.T) {
	const mode = "ROUTER_IP_V4_V6_MODE"
	const dual = `networkConfig: {clusterNetworks: [{cidr: 10.128.0.0/14, hostSubnetLength: 9}, {cidr: "fd01::/48", hostSubnetLength: 64}], serviceNetworkCIDR: "172.30.0.0/16,fd02::/112"}`
	for _, tt := range []struct {
		name, config string
		environment  map[string]string
		want         string
	}{
		{"IPv4 pods", "", nil, ""},
		{"IPv4 and IPv6 pods", dual, nil, "v4v6"},
		{"IPv4 and IPv6 pods, with other variables", dual, map[string]string{"ROUTER_LOG_LEVEL": "info"}, "v4v6"},
		{"administrator's mode", dual, map[string]string{mode: "v4"}, "v4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, masterKind, tt.config)
			if err != nil {
				t.Fatal(err)
			}
			c.Node.Slipway.Router.Environment = tt.environment
			configured := maps.Clone(tt.environment)
			got := c.RouterEnvironment()
			if got[mode] != tt.want {
				t.Errorf("got %v, want %s=%q", got, mode, tt.want)
			}
			for name, value := range configured {
				if got[name] != value {
					t.Errorf("got %v, want %s=%q", got, name, value)
				}
			}
			if !maps.Equal(tt.environment, configured) {
				t.Errorf("the configuration changed to %v", tt.environment)
			}
		})
	}
}

func TestDNSServerOfNode(t *testing.T) {
	host := func(c *Config) any { return c.Node.DNSHost() }
	checkSettings(t, nodeKind, []settingTest{
		{"default", "", host, "169.254.20.10"},
		{"loopback address of OpenShift 3", "dnsBindAddress: 127.0.0.1:53", host, "169.254.20.10"},
		{"all addresses", "dnsBindAddress: 0.0.0.0:53", host, "169.254.20.10"},
		{"own address", "dnsBindAddress: 192.0.2.53:53", host, "192.0.2.53"},
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
