package platform

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestFlexVolumeSettingsReachTheRegistry(t *testing.T) {
	node := &config.NodeConfig{}
	node.Slipway.FlexVolume = map[string]config.FlexVolumeDriver{"example.com/loop": {
		Timeouts: map[string]metav1.Duration{"attach": {Duration: 90 * time.Second}}, Concurrency: 4, VolumeName: "pv",
	}}
	h, err := newHost(&config.Config{Node: node}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := flexvolume.Settings{
		Timeouts:    map[flexvolume.Operation]time.Duration{flexvolume.OpAttach: 90 * time.Second},
		Concurrency: 4,
		VolumeName:  flexvolume.NamingVolume,
	}
	if diff := cmp.Diff(want, h.drivers().Settings("example.com/loop")); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestConfigurationKnowsTheOperationsOfTheEngine(t *testing.T) {
	var want []string
	for _, op := range flexvolume.Operations() {
		want = append(want, string(op))
	}
	if diff := cmp.Diff(want, config.FlexVolumeOperations()); diff != "" {
		t.Errorf("operations (-engine +configuration):\n%s", diff)
	}
}
