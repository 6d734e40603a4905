package nodeprocess

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/network/dns"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
)

// loadNode returns a host with a NodeConfig in its data directory and minimal credentials.
func loadNode(t *testing.T, keys string) *Host {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-") // a short path, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "node"), 0o700); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	for path, content := range map[string]string{
		filepath.Join(dir, "node", "node-config.yaml"): "apiVersion: v1\nkind: NodeConfig\n" + keys + "\n",
		kubeconfig: "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://127.0.0.1'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	h.Credentials = &pki.Credentials{Files: pki.Files{DNSKubeconfig: kubeconfig}}
	return New(h)
}

func TestNameServersComeFromNodeConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.53\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, keys string
		servers    []string
		file       string
	}{
		{"the machine's by default", "", nil, ""},
		{"dnsNameservers", "dnsNameservers: [192.0.2.1, '192.0.2.2:5353']", []string{"192.0.2.1:53", "192.0.2.2:5353"}, ""},
		{"dnsRecursiveResolvConf", "dnsRecursiveResolvConf: " + file, nil, file},
		{"no such file", "dnsRecursiveResolvConf: " + file + ".none", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadNode(t, tt.keys).dns()
			if err != nil {
				t.Fatal(err)
			}
			server := c.(*dns.Server)
			if diff := cmp.Diff(tt.servers, server.Upstreams); diff != "" || server.ResolvConf != tt.file {
				t.Errorf("the server uses %v and %q", server.Upstreams, server.ResolvConf)
			}
		})
	}
}
