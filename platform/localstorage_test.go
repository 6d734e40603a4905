package platform

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/parttest"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/storage/local"
)

func TestNodeWithDisabledLocalStorageLosesLabel(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	l := &localStorage{driver: local.Driver{Node: "node"}, kubelet: client}
	labelOfNode := func() string {
		object, err := client.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object.Labels[localStorageLabel]
	}
	l.label(t.Context(), node.SetLabel)
	if got := labelOfNode(); got != "true" {
		t.Fatalf("the label is %q", got)
	}
	parttest.Run(t, (&disabledLocalStorage{l}).Run)
	eventually.Equal(t, "label of the node", labelOfNode, "")
}
