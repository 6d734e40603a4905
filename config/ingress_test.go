package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNetworkOfAddressesForServices(t *testing.T) {
	const none = "invalid Prefix"
	for text, want := range map[string]string{
		"":                                   "172.29.0.0/16",
		"ingressIPNetworkCIDR: 192.0.2.0/24": "192.0.2.0/24",
		"ingressIPNetworkCIDR: 0.0.0.0/32":   none,
		"clusterNetworkCIDR: 172.28.0.0/14, serviceNetworkCIDR: 10.0.0.0/16, hostSubnetLength: 9": none, // the usual one would overlap
		"ingressIPNetworkCIDR: 172.30.8.0/24":                                                     "which overlaps the cluster's network 172.30.0.0/16",
		"ingressIPNetworkCIDR: 10.129.0.0/24":                                                     "which overlaps the cluster's network 10.128.0.0/14",
		"ingressIPNetworkCIDR: 192.0.2.0/31":                                                      "must be between a /8 and a /30, or 0.0.0.0/32 for none",
		"ingressIPNetworkCIDR: 192.0.2.1/24":                                                      "write 192.0.2.0/24",
		"}, kubernetesMasterConfig: {controllerArguments: {cloud-provider: [external]}":           none, // the cloud gives addresses
	} {
		file := filepath.Join(t.TempDir(), "master-config.yaml")
		if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: MasterConfig, networkConfig: {"+text+"}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(t.TempDir(), file)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		if got := c.Master.IngressNetwork().String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
