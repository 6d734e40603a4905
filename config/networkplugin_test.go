package config

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestNetworkPluginOfNodeIsReplacedByThatOfCluster(t *testing.T) {
	const notice = "NodeConfig: networkConfig.networkPluginName, because master-config.yaml has redhat/openshift-ovs-multitenant"
	for plugin, want := range map[string][]string{
		"redhat/openshift-ovs-multitenant":   nil,
		"":                                   nil,
		"redhat/openshift-ovs-networkpolicy": {notice},
	} {
		file := filepath.Join(t.TempDir(), "both.yaml")
		write(t, file, "apiVersion: v1\nkind: MasterConfig\nnetworkConfig: {networkPluginName: redhat/openshift-ovs-multitenant}\n"+
			"---\napiVersion: v1\nkind: NodeConfig\nnetworkConfig: {mtu: 1400, networkPluginName: \""+plugin+"\"}\n")
		c, err := Load(t.TempDir(), file)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Ignored(); !slices.Equal(got, want) {
			t.Errorf("plugin %q: ignored settings %q, want %q", plugin, got, want)
		}
	}
}
