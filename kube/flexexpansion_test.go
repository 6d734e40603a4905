package kube

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/volume"
)

// unavailablePlugin is the plugin for a driver that cannot be used.
type unavailablePlugin struct{ volume.VolumePlugin }

func (unavailablePlugin) Init(volume.VolumeHost) error { return nil }
func (unavailablePlugin) GetPluginName() string        { return "unavailable" }
func (unavailablePlugin) CanSupport(*volume.Spec) bool { return true }
func (unavailablePlugin) GetVolumeName(*volume.Spec) (string, error) {
	return "", errors.New("driver disk is not installed")
}

func TestWaitingExpansionHasReason(t *testing.T) {
	plugins := &volume.VolumePluginMgr{}
	host := expansionHost{client: fake.NewClientset(), root: t.TempDir()}
	if err := plugins.InitPlugins([]volume.VolumePlugin{unavailablePlugin{}}, nil, host); err != nil {
		t.Fatal(err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	pv.Spec.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: "example.com/disk"}
	err := (&flexExpansion{plugins: plugins}).unavailable(pv)
	if err == nil || err.Error() != "the expansion waits for the driver: driver disk is not installed" {
		t.Errorf("the reason is %v", err)
	}
}
