package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/componenttest"
	volumeplugin "github.com/slipway-platform/slipway/kube/flexvolume"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestAnExpansionSaysWhyItWaitsForItsDriver(t *testing.T) {
	registry := &flexvolume.Registry{Dir: t.TempDir()}
	componenttest.Run(t, registry.Run)
	plugins := &volume.VolumePluginMgr{}
	host := expansionHost{client: fake.NewClientset(), root: t.TempDir()}
	if err := plugins.InitPlugins(nil, volumeplugin.NewProber(registry, volumeplugin.Options{}), host); err != nil {
		t.Fatal(err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	pv.Spec.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: "absent.example.com/disk"}
	err := (&flexExpansion{plugins: plugins}).unavailable(pv)
	const want = `the expansion waits for the driver: find FlexVolume driver "absent.example.com/disk": it is not installed; install it as `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the reason is %v", err)
	}
}
