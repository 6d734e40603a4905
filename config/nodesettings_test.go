package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeSettingsAreValidConfiguration(t *testing.T) {
	for name, keys := range map[string]string{
		"defaults": "",
		"all settings": `
servingInfo: {bindAddress: "0.0.0.0:9443"}
masterPublicURL: https://master.example.com
networkConfig: {clusterNetworks: [{cidr: 10.32.0.0/14, hostSubnetLength: 8}], serviceNetworkCIDR: 172.20.0.0/16, networkPluginName: cni}
routingConfig: {subdomain: apps.example.com}
imagePolicyConfig: {internalRegistryHostname: "registry.example:5000", allowedRegistriesForImport: [{domainName: example.com}]}
slipway: {outbound: {allowedHosts: [mirror.example.com]}, registry: {bindAddress: "0.0.0.0:5001"}}`,
		"no registry": "imagePolicyConfig: {allowedRegistriesForImport: []}\nslipway: {registry: {disabled: true}}",
	} {
		master, err := loadText(t, "MasterConfig", keys)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := master.Master.NodeSettings()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := CheckNodeSettings(settings); err != nil {
			t.Error(err)
		}
		if err := WriteSettings(dir, settings); err != nil {
			t.Fatal(err)
		}
		node, err := Load(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		type view struct {
			Port                        int
			Public                      string
			Pods, Services, Ingress     string
			OtherNetwork                bool
			Subdomain, Images, Registry string
			Disabled                    bool
			Hosts, Imports              []string
		}
		viewOf := func(c *MasterConfig) view {
			_, port := c.APIAddress()
			return view{
				port, c.PublicAddress(), fmt.Sprint(c.DualStack()), c.ServiceNetwork().String(), c.IngressNetwork().String(), c.HasOtherNetwork(),
				c.RoutingConfig.Subdomain, c.ImagePolicyConfig.InternalRegistryHostname, c.Slipway.Registry.BindAddress,
				c.Slipway.Registry.Disabled, append([]string{}, c.Slipway.Outbound.AllowedHosts...), c.ImportRegistries(),
			}
		}
		if diff := cmp.Diff(viewOf(master.Master), viewOf(node.Master)); diff != "" {
			t.Errorf("%s: settings of the node (-master +node):\n%s", name, diff)
		}
	}
}

func TestSettingsOfNewerMasterAreRejected(t *testing.T) {
	err := CheckNodeSettings("apiVersion: v1\nkind: MasterConfig\nslipway: {later: true}\n")
	if err == nil || !strings.Contains(err.Error(), "slipway.later") || !strings.Contains(err.Error(), "use the same version") {
		t.Errorf("got %v", err)
	}
}

func TestFormatsThatTheKubeletDoesNotAcceptAreIgnored(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	for settings, want := range map[string]string{
		"{acceptContentTypes: '" + protobuf + ",application/json', contentType: " + protobuf + "}": "",
		"{acceptContentTypes: '" + protobuf + ", application/json'}":                               "",
		"{acceptContentTypes: application/json, contentType: application/json}":                    "",
		"{contentType: application/json}":                                                          "",
		"{acceptContentTypes: '" + protobuf + ",application/json', contentType: application/json}": "application/json",
		"{acceptContentTypes: application/json}":                                                   protobuf + ",application/json",
	} {
		c, err := loadText(t, "NodeConfig", "masterClientConnectionOverrides: "+settings)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		if want != "" {
			list = []string{"NodeConfig: masterClientConnectionOverrides.acceptContentTypes, because the kubelet accepts " + want}
		}
		if got := c.Ignored(); !slices.Equal(got, list) {
			t.Errorf("%s: ignored settings %q, want %q", settings, got, list)
		}
	}
}

func TestQuotaOfGroups(t *testing.T) {
	for quota, want := range map[string]int64{"null": 0, "512Mi": 512 << 20} {
		c, err := loadText(t, "NodeConfig", "volumeConfig: {localQuota: {perFSGroup: "+quota+"}}")
		if err != nil || c.Node.GroupQuota() != want || len(c.Ignored()) > 0 {
			t.Errorf("%s: %d, %v", quota, c.Node.GroupQuota(), err)
		}
	}
	const want = `volumeConfig.localQuota.perFSGroup: is 0, must be more than 0`
	if _, err := loadText(t, "NodeConfig", "volumeConfig: {localQuota: {perFSGroup: '0'}}"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a quota of 0: %v", err)
	}
}
