package volumeplugin

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"
)

// The driver can no longer detach the volume from its node, because the node was deleted.
func TestVolumeOfDeletedNodeIsAttachedElsewhere(t *testing.T) {
	for name, restart := range map[string]bool{"by the same process": false, "by the next process": true} {
		t.Run(name, func(t *testing.T) {
			spec := pv(nil)
			spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			c := start(t, nil, "", "")
			attach := func(node string) error {
				plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
				_, err := must[volume.Attacher](t)(plugin.NewAttacher()).Attach(spec, types.NodeName(node))
				return err
			}
			if err := attach("lost"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.path+".stuck", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if restart {
				c = start(t, c, "", "")
			}
			nodes := c.objects.CoreV1().Nodes()
			must[*corev1.Node](t)(nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}, metav1.CreateOptions{}))
			if attach("other") == nil {
				t.Error("the volume was attached to two nodes")
			}
			if err := nodes.Delete(t.Context(), "lost", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := attach("other"); err != nil {
				t.Error(err)
			}
		})
	}
}
