package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// loadText loads a MasterConfig or a NodeConfig with the given keys.
func loadText(t *testing.T, kind, keys string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, "apiVersion: v1\nkind: "+kind+"\n"+keys+"\n")
	return Load("/data", file)
}

type settingTest struct {
	name string // names the default, or the changed keys
	keys string
	got  func(*Config) any
	want any
}

func checkSettings(t *testing.T, kind string, tests []settingTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, kind, tt.keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.got(c)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.keys, diff)
			}
		})
	}
}

func TestMasterSettings(t *testing.T) {
	address := func(c *Config) any {
		host, port := c.Master.APIAddress()
		return []any{host, port}
	}
	network := func(c *Config) any {
		first := c.Master.DualStack().IPv4[0]
		return []any{first.String(), first.HostBits}
	}
	services := func(c *Config) any {
		return []string{c.Master.ServiceNetwork().String(), c.Master.APIServiceIP().String()}
	}
	nodePorts := func(c *Config) any { return c.Master.NodePorts().String() }
	eviction := func(c *Config) any { return c.Master.PodEvictionTimeout() }
	etcd := func(c *Config) any {
		return []string{c.Master.EtcdAddress(), c.Master.EtcdPeerAddress(), c.Master.EtcdDirectory()}
	}
	auditFile := func(c *Config) any { return c.Master.AuditConfig.AuditFilePath }
	checkSettings(t, masterKind, []settingTest{
		{"API server listens on port 8443", "", address, []any{"0.0.0.0", 8443}},
		{"bindAddress moves the API server", "servingInfo: {bindAddress: '192.0.2.1:443'}", address,
			[]any{"192.0.2.1", 443}},
		{"pods have a /14 with a /23 per host", "", network, []any{"10.128.0.0/14", 9}},
		{"clusterNetworkCIDR is the old key of pods",
			"networkConfig: {clusterNetworkCIDR: 10.1.0.0/16, hostSubnetLength: 8}", network,
			[]any{"10.1.0.0/16", 8}},
		{"first of clusterNetworks applies",
			"networkConfig: {clusterNetworks: [{cidr: 10.2.0.0/16, hostSubnetLength: 7}, " +
				"{cidr: 10.3.0.0/16, hostSubnetLength: 8}]}", network, []any{"10.2.0.0/16", 7}},
		{"services have 172.30.0.0/16", "", services, []string{"172.30.0.0/16", "172.30.0.1"}},
		{"serviceNetworkCIDR sets the services' network",
			"networkConfig: {serviceNetworkCIDR: 10.96.0.0/16}", services,
			[]string{"10.96.0.0/16", "10.96.0.1"}},
		{"servicesSubnet sets the services' network",
			"kubernetesMasterConfig: {servicesSubnet: 10.97.0.0/16}", services,
			[]string{"10.97.0.0/16", "10.97.0.1"}},
		{"node ports are 30000-32767", "", nodePorts, "30000-32767"},
		{"servicesNodePortRange sets node ports",
			"kubernetesMasterConfig: {servicesNodePortRange: 31000-31099}", nodePorts, "31000-31099"},
		{"pods leave a failed node after 5 minutes", "", eviction, 5 * time.Minute},
		{"podEvictionTimeout sets the delay", "kubernetesMasterConfig: {podEvictionTimeout: 90s}",
			eviction, 90 * time.Second},
		{"etcd is local", "", etcd, []string{"127.0.0.1:4001", "127.0.0.1:7001", "/data/etcd"}},
		{"etcdConfig sets addresses and directory",
			"etcdConfig: {address: 'a:1', peerAddress: 'b:2', storageDirectory: /etcd}", etcd,
			[]string{"a:1", "b:2", "/etcd"}},
		{"audit log is in the data directory", "", auditFile, "/data/log/audit.log"},
		{"empty auditConfig disables the audit log", "auditConfig: {}",
			func(c *Config) any { return c.Master.AuditConfig.Enabled }, false},
		{"auditFilePath sets the audit log", "auditConfig: {enabled: true, auditFilePath: /log/a}",
			auditFile, "/log/a"},
		{"subdomain sets the host names of routes", "routingConfig: {subdomain: apps.example.com}",
			func(c *Config) any { return c.Master.RoutingConfig.Subdomain }, "apps.example.com"},
		{"secrets are encrypted", "", func(c *Config) any { return *c.Master.Slipway.EncryptSecrets }, true},
		{"encryptSecrets can disable encryption", "slipway: {encryptSecrets: no}",
			func(c *Config) any { return *c.Master.Slipway.EncryptSecrets }, false},
		{"users are in a file of the data directory", "",
			func(c *Config) any { return []any{c.DeveloperFile(), c.HTPasswdFiles()} },
			[]any{"/data/users.htpasswd", []string{"/data/users.htpasswd"}}},
		{"oauthConfig without providers has no users", "oauthConfig: {}",
			func(c *Config) any { return []any{c.DeveloperFile(), len(c.Master.IdentityProviders())} },
			[]any{"", 0}},
	})
}

func TestNodeSettings(t *testing.T) {
	dns := func(c *Config) any { return []string{c.Node.DNSAddress(), c.Node.ResolverIP()} }
	manifests := func(c *Config) any {
		path, interval := c.Node.ManifestDir()
		return []any{path, interval}
	}
	checkSettings(t, nodeKind, []settingTest{
		{"kubelet listens on port 10250", "", func(c *Config) any {
			host, port := c.Node.KubeletAddress()
			return []any{host, port}
		}, []any{"0.0.0.0", 10250}},
		{"DNS has a link-local address", "", dns, []string{"169.254.20.10:53", "169.254.20.10"}},
		{"dnsBindAddress sets both addresses of DNS", "dnsBindAddress: 169.254.1.1:53", dns,
			[]string{"169.254.1.1:53", "169.254.1.1"}},
		{"loopback dnsBindAddress is not reachable for pods", "dnsBindAddress: 127.0.0.1:53", dns,
			[]string{"169.254.20.10:53", "169.254.20.10"}},
		{"dnsIP overrides the resolver of pods", "dnsIP: 192.0.2.53", dns,
			[]string{"169.254.20.10:53", "192.0.2.53"}},
		{"unspecified dnsIP means this node", "dnsIP: 0.0.0.0", dns,
			[]string{"169.254.20.10:53", "169.254.20.10"}},
		{"dnsNameservers get port 53", "dnsNameservers: [192.0.2.1, '192.0.2.2:5353']",
			func(c *Config) any { return c.Node.Nameservers() }, []string{"192.0.2.1:53", "192.0.2.2:5353"}},
		{"no static pods", "", manifests, []any{"", time.Duration(0)}},
		{"podManifestConfig is read every 20 seconds", "podManifestConfig: {path: /pods}", manifests,
			[]any{"/pods", 20 * time.Second}},
		{"fileCheckIntervalSeconds sets the interval",
			"podManifestConfig: {path: /pods, fileCheckIntervalSeconds: 3}", manifests,
			[]any{"/pods", 3 * time.Second}},
		{"kubelet's argument overrides podManifestConfig",
			"podManifestConfig: {path: /pods}\nkubeletArguments: {pod-manifest-path: [/other]}",
			func(c *Config) any { path, _ := c.Node.ManifestDir(); return path }, "/other"},
		{"last value of a kubelet argument applies",
			"kubeletArguments: {volume-plugin-dir: [/one, /two]}",
			func(c *Config) any { return c.Node.VolumePluginDir() }, "/two"},
		{"storage reserve in bytes", "slipway: {localStorage: {reserve: 1Ki}}",
			func(c *Config) any { bytes, _, _ := c.Node.Slipway.LocalStorage.Reserved(); return bytes },
			int64(1024)},
		{"storage reserve in percent", "slipway: {localStorage: {reserve: 25%}}",
			func(c *Config) any { _, share, _ := c.Node.Slipway.LocalStorage.Reserved(); return share },
			0.25},
	})
}

func TestInvalidRegistrySettings(t *testing.T) {
	tests := []struct {
		name, keys, want string
	}{
		{"quota is not a quantity", "projectQuota: much", "projectQuota: is \"much\", must be a quantity"},
		{"reserve is the whole disk", "reserve: 100%", "reserve: is \"100%\", must be at least 0% and less"},
		{"address without a port", "bindAddress: 192.0.2.1", "bindAddress: is \"192.0.2.1\", must be an IP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, masterKind, "slipway: {registry: {"+tt.keys+"}}")
			if want := "slipway.registry." + tt.want; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load: %v, want %s", err, want)
			}
		})
	}
}

func TestRegistryQuota(t *testing.T) {
	tests := []struct {
		name, keys string
		bytes      int64
		limited    bool
	}{
		{"default", "{}", 50 << 30, true},
		{"own limit", "{projectQuota: 1Mi}", 1 << 20, true},
		{"no limit", "{projectQuota: none}", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, masterKind, "slipway: {registry: "+tt.keys+"}")
			if err != nil {
				t.Fatal(err)
			}
			bytes, limited, err := c.Master.Slipway.Registry.Quota()
			if err != nil || bytes != tt.bytes || limited != tt.limited {
				t.Errorf("got %d, %t, %v, want %d, %t", bytes, limited, err, tt.bytes, tt.limited)
			}
		})
	}
}

func TestAdmissionPlugins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.yaml")
	write(t, file, "kind: PluginConfig\nlimit: 5\n")
	tests := []struct {
		name, plugin string
		want         []AdmissionPlugin
	}{
		{"default configuration enables", "AlwaysPullImages: {configuration: {kind: DefaultAdmissionConfig}}",
			[]AdmissionPlugin{{Name: "AlwaysPullImages"}}},
		{"default configuration disables",
			"LimitRanger: {configuration: {kind: DefaultAdmissionConfig, disable: true}}",
			[]AdmissionPlugin{{Name: "LimitRanger", Disabled: true}}},
		{"own configuration", "RunOnceDuration: {configuration: {kind: RunOnceDurationConfig}}",
			[]AdmissionPlugin{{Name: "RunOnceDuration",
				Configuration: []byte(`{"kind":"RunOnceDurationConfig"}`)}}},
		{"configuration in a file", "PodNodeSelector: {location: " + file + "}",
			[]AdmissionPlugin{{Name: "PodNodeSelector",
				Configuration: []byte(`{"kind":"PluginConfig","limit":5}`)}}},
		{"unknown plugin is skipped", "Other: {configuration: {kind: X}}", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, masterKind, "admissionConfig: {pluginConfig: {"+tt.plugin+"}}")
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Master.AdmissionPlugins()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("missing file is an error", func(t *testing.T) {
		c, err := loadText(t, masterKind,
			"admissionConfig: {pluginConfig: {LimitRanger: {location: /does/not/exist}}}")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Master.AdmissionPlugins(); err == nil ||
			!strings.Contains(err.Error(), "LimitRanger: open /does/not/exist") {
			t.Errorf("got %v, want an error that names plugin and file", err)
		}
	})
}
