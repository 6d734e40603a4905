package volumeplugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecordsOfEarlierVersionAreConverted(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	configMaps := m.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	for _, node := range []string{"one", "two"} {
		must[*corev1.ConfigMap](t)(configMaps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "former-" + node, Labels: map[string]string{recordLabel: "true"}},
			Data:       map[string]string{"driver": name, "node": node, "volume": "disk"},
		}, metav1.CreateOptions{}))
	}
	for _, leader := range []string{"first", "second"} {
		m.elect(leader)
		if err := m.attachments(leader, m.client).Shared.convert(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []attachment{to("one").attachment, to("two").attachment}
	if diff := cmp.Diff(want, m.records(), cmp.AllowUnexported(attachment{})); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	for _, a := range want {
		if err := m.attachments("second", m.client).detach(call{attachment: a}, run(nil)); err != nil {
			t.Error(err)
		}
	}
	if list := must[*corev1.ConfigMapList](t)(configMaps.List(t.Context(), metav1.ListOptions{LabelSelector: recordLabel})); len(list.Items) > 0 {
		t.Errorf("remaining records: %v", list.Items)
	}
}

func TestNodeOutOfServiceUsesNoVolumes(t *testing.T) {
	m := newMasters(t)
	nodes, a := m.client.CoreV1().Nodes(), to("first").attachment
	node := must[*corev1.Node](t)(nodes.Get(t.Context(), "first", metav1.GetOptions{}))
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(a.key())}
	node = must[*corev1.Node](t)(nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}))
	if !must[bool](t)(isInUse(t.Context(), m.client, a)) {
		t.Error("the node does not use the volume")
	}
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	must[*corev1.Node](t)(nodes.Update(t.Context(), node, metav1.UpdateOptions{}))
	if must[bool](t)(isInUse(t.Context(), m.client, a)) {
		t.Error("the node that is out of service uses the volume")
	}
}
