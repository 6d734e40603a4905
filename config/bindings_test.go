package config

import (
	"slices"
	"strings"
	"testing"
)

func TestBindingsFollowConfiguration(t *testing.T) {
	find := func(use string) func(*Config) any {
		return func(c *Config) any {
			bindings, err := c.Bindings("/etc/slipway.yaml")
			if err != nil {
				return err.Error()
			}
			var lines []string
			for _, b := range bindings {
				if b.Use == use {
					lines = append(lines, strings.Join([]string{b.Network, b.Address.String(), b.Setting, b.File}, " "))
				}
			}
			return lines
		}
	}
	checkSettings(t, masterKind, []settingTest{
		{"API server", "servingInfo: {bindAddress: '192.0.2.1:443'}", find("API"),
			[]string{"tcp 192.0.2.1:443 servingInfo.bindAddress /etc/slipway.yaml"}},
		{"without dnsConfig, the master has no DNS server", "", find("DNS of the master"), []string(nil)},
		{"DNS of the master binds both protocols", "dnsConfig: {bindAddress: '192.0.2.1:53'}", find("DNS of the master"), []string{
			"tcp 192.0.2.1:53 dnsConfig.bindAddress /etc/slipway.yaml", "udp 192.0.2.1:53 dnsConfig.bindAddress /etc/slipway.yaml",
		}},
		{"an address that is not an IP address names its file and setting", "etcdConfig: {address: 'a:1'}", find(""),
			`/etc/slipway.yaml: etcdConfig.address: parse address "a:1": ParseAddr("a"): unable to parse IP`},
	})
	checkSettings(t, nodeKind, []settingTest{
		{"health of the proxy by default", "", find("proxy health"),
			[]string{"tcp 127.0.0.1:10256 proxyArguments.healthz-bind-address /etc/slipway.yaml"}},
		{"the last value of an argument applies", "proxyArguments: {healthz-bind-address: ['127.0.0.1:1', '127.0.0.1:2']}",
			find("proxy health"), []string{"tcp 127.0.0.1:2 proxyArguments.healthz-bind-address /etc/slipway.yaml"}},
		{"the proxy serves no metrics by default", "", find("proxy metrics"), []string(nil)},
		{"metrics of the proxy", "proxyArguments: {metrics-bind-address: ['127.0.0.1:3']}",
			find("proxy metrics"), []string{"tcp 127.0.0.1:3 proxyArguments.metrics-bind-address /etc/slipway.yaml"}},
	})
}

func TestBindingNamesFileOfSetting(t *testing.T) {
	c, err := Load(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := c.Bindings("")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"etcdConfig.address": MasterFile(c.DataDir), "dnsBindAddress": NodeFile(c.DataDir)}
	for setting, file := range files {
		i := slices.IndexFunc(bindings, func(b Binding) bool { return b.Setting == setting })
		if i < 0 || bindings[i].File != file {
			t.Errorf("%s: got %+v, want file %s", setting, bindings, file)
		}
	}
}

func TestBalancerOfNodeBindsPortOfMasters(t *testing.T) {
	c, err := Load(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := c.NodeBindings("")
	if err != nil {
		t.Fatal(err)
	}
	var uses []string
	for _, b := range bindings {
		uses = append(uses, b.Use)
	}
	if got := strings.Join(uses, ", "); got != "API of the masters, kubelet, proxy health, DNS, DNS" {
		t.Errorf("a node binds %s", got)
	}
	if got := bindings[0].Address.String(); got != "127.0.0.1:8443" {
		t.Errorf("the balancer binds %s", got)
	}
}
