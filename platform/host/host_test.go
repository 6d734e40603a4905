package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestFlexVolumeSettingsComeFromConfiguration(t *testing.T) {
	node := &config.NodeConfig{}
	node.Slipway.FlexVolume = map[string]config.FlexVolumeDriver{"example.com/loop": {
		Timeouts: map[string]metav1.Duration{"attach": {Duration: 90 * time.Second}}, Concurrency: 4, VolumeName: "pv",
	}}
	h, err := New(&config.Config{Node: node}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := flexvolume.Settings{
		Timeouts:    map[flexvolume.Operation]time.Duration{flexvolume.OpAttach: 90 * time.Second},
		Concurrency: 4,
		VolumeName:  flexvolume.NamingVolume,
	}
	if diff := cmp.Diff(want, h.Drivers(Node).Settings("example.com/loop")); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestConfigurationSupportsAllFlexVolumeOperations(t *testing.T) {
	var want []string
	for _, op := range flexvolume.Operations() {
		want = append(want, string(op))
	}
	if diff := cmp.Diff(want, config.FlexVolumeOperations()); diff != "" {
		t.Errorf("operations (-engine +configuration):\n%s", diff)
	}
}

// loadHost returns a host with the given control plane configuration.
func loadHost(t *testing.T, master string) *Host {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: MasterConfig\n"+master+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Load("/data", file)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDeveloperOnlyWithoutProviders(t *testing.T) {
	if users := loadHost(t, "").DeveloperFile(); users == "" {
		t.Error("the default configuration has no file for the developer")
	}
	if users := loadHost(t, "oauthConfig: {identityProviders: []}").DeveloperFile(); users != "" {
		t.Errorf("got file %q", users)
	}
}
