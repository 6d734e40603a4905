package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestNodeWithDisabledComponentLosesLabel(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	label := Label{Client: client, Node: "node", Name: "example.com/storage"}
	value := func() string {
		object, err := client.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return object.Labels[label.Name]
	}
	label.Set(t.Context())
	if got := value(); got != "true" {
		t.Fatalf("the label is %q", got)
	}
	componenttest.Run(t, (&Unlabeled{Component: "local-storage", Label: label}).Run)
	eventually.Equal(t, "label of the node", value, "")
}
