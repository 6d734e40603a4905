package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadCNI loads a configuration with the given network plugin and kubelet arguments.
func loadCNI(t *testing.T, plugin, arguments string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "both.yaml")
	write(t, file, "apiVersion: v1\nkind: MasterConfig\nnetworkConfig: {networkPluginName: "+plugin+"}\n"+
		"---\napiVersion: v1\nkind: NodeConfig\nkubeletArguments: "+arguments+"\n")
	return Load(t.TempDir(), file)
}

func TestKubeletArgumentsSetCNIDirectories(t *testing.T) {
	for arguments, want := range map[string][]string{
		"{}": {"/etc/cni/net.d", "/opt/cni/bin"},
		"{network-plugin: [cni], cni-conf-dir: [/srv/net.d], cni-bin-dir: ['/usr/lib/cni,/srv/bin']}": {"/srv/net.d", "/usr/lib/cni", "/srv/bin"},
	} {
		c, err := loadCNI(t, "cni", arguments)
		if err != nil {
			t.Fatal(err)
		}
		configuration, programs := c.Node.CNIDirectories()
		if diff := cmp.Diff(want, append([]string{configuration}, programs...)); diff != "" {
			t.Errorf("directories (-want +got):\n%s", diff)
		}
		for name := range c.Node.KubeletFlags() {
			if strings.HasPrefix(name, "cni-") || name == "network-plugin" {
				t.Errorf("%s is passed to kubelet", name)
			}
		}
		if ignored := c.Ignored(); len(ignored) > 0 {
			t.Errorf("%s: ignored settings %q", arguments, ignored)
		}
	}
}

func TestInvalidCNIArgumentsAreReported(t *testing.T) {
	for arguments, want := range map[string]string{
		"{network-plugin: [kubenet]}":             `kubeletArguments.network-plugin[0]: is "kubenet", must be cni`,
		"{cni-conf-dir: [net.d]}":                 `kubeletArguments.cni-conf-dir[0]: is "net.d", must be an absolute path`,
		"{cni-bin-dir: ['/opt/cni/bin,plugins']}": `kubeletArguments.cni-bin-dir[0]: is "plugins", must be an absolute path`,
	} {
		if _, err := loadCNI(t, "cni", arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}

func TestCNIDirectoriesAreIgnoredWithOwnNetwork(t *testing.T) {
	c, err := loadCNI(t, "redhat/openshift-ovs-subnet", "{network-plugin: [cni], cni-bin-dir: [/opt/cni/bin]}")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"NodeConfig: kubeletArguments.cni-bin-dir, because networkConfig.networkPluginName is not cni"}
	if got := c.Ignored(); !slices.Equal(got, want) {
		t.Errorf("ignored settings %q, want %q", got, want)
	}
}
