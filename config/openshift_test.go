package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestOpenShiftFilesDecodeLikeUpstream compares the strict decoder with OpenShift 3's lenient
// decoder.
func TestOpenShiftFilesDecodeLikeUpstream(t *testing.T) {
	master, node := &MasterConfig{}, &NodeConfig{}
	for path, target := range map[string]any{"master-config.yaml": master, "node-config.yaml": node} {
		roots, problems := parseFile(filepath.Join("testdata", path))
		if len(problems) > 0 || len(roots) != 1 {
			t.Fatalf("%s: %d documents, %v", path, len(roots), problems)
		}
		if _, problems := decode(path, roots[0], target, retiredMasterKeys()); len(problems) > 0 {
			t.Fatal(problems)
		}
	}
	wantMaster, wantNode := &MasterConfig{}, &NodeConfig{}
	for path, target := range map[string]any{"master-config.yaml": wantMaster, "node-config.yaml": wantNode} {
		data, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, target); err != nil {
			t.Fatal(err)
		}
	}
	for _, pair := range [][2]any{{wantMaster, master}, {wantNode, node}} {
		want, err := json.MarshalIndent(pair[0], "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.MarshalIndent(pair[1], "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("configuration (-upstream +ours):\n%s", diff)
		}
	}
}

func loadOpenShift(t *testing.T) *Config {
	t.Helper()
	both := read(t, "testdata/master-config.yaml") + "---\n" + read(t, "testdata/node-config.yaml")
	file := filepath.Join(t.TempDir(), "both.yaml")
	write(t, file, both)
	c, err := Load("/var/lib/slipway", file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOpenShiftFilesResolve(t *testing.T) {
	c := loadOpenShift(t)
	folder := filepath.Dir(c.master.file)
	host, port := c.Master.APIAddress()
	network := c.Master.DualStack().IPv4[0]
	path, _ := c.Node.ManifestDir()
	got := map[string]any{
		"api host": host, "api port": port,
		"cluster network": network.String(), "host bits": network.HostBits,
		"service network": c.Master.ServiceNetwork().String(),
		"api service":     c.Master.APIServiceIP().String(),
		"node ports":      c.Master.NodePorts().String(),
		"eviction":        c.Master.PodEvictionTimeout().String(),
		"etcd":            c.Master.EtcdAddress(), "etcd peer": c.Master.EtcdPeerAddress(),
		"etcd directory": c.Master.EtcdDirectory(),
		"audit file":     c.Master.AuditConfig.AuditFilePath,
		"policy":         c.Master.AuditConfig.PolicyFile,
		"signing key":    c.Master.ServiceAccountConfig.PrivateKeyFile,
		"dns":            c.Node.DNSAddress(), "resolver": c.Node.ResolverIP(), "manifests": path,
		"plugins": c.Node.VolumePluginDir(), "volumes": c.Node.VolumeDirectory,
		"max pods": c.Node.KubeletArguments["max-pods"][0],
	}
	want := map[string]any{
		"api host": "0.0.0.0", "api port": 8443,
		"cluster network": "10.128.0.0/14", "host bits": 9,
		"service network": "172.30.0.0/16", "api service": "172.30.0.1",
		"node ports": "30000-32767", "eviction": "5m0s",
		"etcd": "127.0.0.1:2379", "etcd peer": "127.0.0.1:7001",
		"etcd directory": "/var/lib/slipway/etcd",
		"audit file":     folder + "/audit/openshift.log", "policy": "/etc/origin/master/audit-policy.yaml",
		"signing key": folder + "/serviceaccounts.private.key",
		"dns":         "169.254.20.10:53", "resolver": "169.254.20.10", "manifests": "/etc/origin/node/pods",
		"plugins":  "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
		"volumes":  "/var/lib/origin/openshift.local.volumes",
		"max pods": "40",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestIgnoredListsUnsupportedSettings(t *testing.T) {
	golden(t, "openshift.ignored", strings.Join(loadOpenShift(t).Ignored(), "\n")+"\n")
}

func TestSupportedSettingsAreKeysOfTypes(t *testing.T) {
	c := loadOpenShift(t)
	for kind, target := range map[string]any{masterKind: c.Master, nodeKind: c.Node} {
		for _, key := range supported(kind) {
			if slices.Contains(pluginKeys(), key) {
				continue // plugin names can contain dots
			}
			nested := "x"
			for _, name := range reverse(strings.Split(key, ".")) {
				nested = "{" + name + ": " + nested + "}"
			}
			roots, err := parse([]byte(nested))
			if err != nil {
				t.Fatal(err)
			}
			_, problems := decode("f", roots[0], target, nil)
			if len(problems) > 0 && strings.Contains(problems[0].Text, "unknown key") {
				t.Errorf("%s: %v", kind, problems[0])
			}
		}
	}
}

func reverse(list []string) []string {
	var reversed []string
	for _, item := range list {
		reversed = append([]string{item}, reversed...)
	}
	return reversed
}

func TestViewIsValidConfigurationWithoutSecrets(t *testing.T) {
	c := loadOpenShift(t)
	view, err := c.View()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "openshift.view", strings.ReplaceAll(string(view), filepath.Dir(c.master.file), "/etc/origin/master"))
	if text := string(view); strings.Contains(text, "secret-value") || strings.Contains(text, "null") {
		t.Errorf("the view contains a secret or a null:\n%s", text)
	}

	file := filepath.Join(t.TempDir(), "view.yaml")
	write(t, file, string(view))
	config, err := Load("/var/lib/slipway", file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := config.View()
	if err != nil {
		t.Fatal(err)
	}
	secondView := strings.ReplaceAll(string(second), config.master.file, c.master.file)
	if diff := cmp.Diff(string(view), secondView); diff != "" {
		t.Errorf("view of the view differs:\n%s", diff)
	}
}

func TestViewOfDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, "apiVersion: v1\nkind: NodeConfig\nnodeName: host\n")
	c, err := Load(filepath.Join(t.TempDir(), "data"), file)
	if err != nil {
		t.Fatal(err)
	}
	view, err := c.View()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		c.DataDir, "/var/lib/slipway", c.Node.Slipway.CgroupRoot, "/slipway", file, "c.yaml",
	).Replace(string(view))
	golden(t, "default.view", text)
}
