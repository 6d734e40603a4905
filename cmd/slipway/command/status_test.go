package command

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusReportsWhyNodeAcceptsNoPods(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status}
	}
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse), condition(corev1.NodeDiskPressure, corev1.ConditionTrue),
			condition(corev1.NodeReady, corev1.ConditionTrue),
		}},
	}
	var out bytes.Buffer
	if err := printStatus(&out, hostStatus{Nodes: []nodeStatus{{Name: "one", Ready: true, Refuses: refusals(node)}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one accepts no more pods: its disk is nearly full", "oc adm uncordon one"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "memory") {
		t.Errorf("status names a pressure that does not exist:\n%s", &out)
	}
}
