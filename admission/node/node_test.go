package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

func TestOutOfDiskFollowsDiskPressure(t *testing.T) {
	start, later := metav1.Unix(100, 0), metav1.NewTime(time.Unix(200, 0))
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string, changed metav1.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: later, LastTransitionTime: changed}
	}
	sufficient := condition(OutOfDisk, corev1.ConditionFalse, "KubeletHasSufficientDisk", "kubelet has sufficient disk space available", start)
	noPressure := condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure", start)
	pressure := condition(corev1.NodeDiskPressure, corev1.ConditionTrue, "KubeletHasDiskPressure", "kubelet has disk pressure", later)
	unknown := condition(corev1.NodeDiskPressure, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.", later)
	for name, tt := range map[string]struct {
		operation        admission.Operation
		resource         string
		subresource      string
		conditions, want []corev1.NodeCondition
	}{
		"registration without pressure": {admission.Create, "nodes", "", []corev1.NodeCondition{noPressure, ready}, []corev1.NodeCondition{sufficient, noPressure, ready}},
		"pressure": {admission.Update, "nodes", "status", []corev1.NodeCondition{sufficient, pressure, ready},
			[]corev1.NodeCondition{condition(OutOfDisk, corev1.ConditionTrue, "KubeletOutOfDisk", "out of disk space", later), pressure, ready}},
		"expired status": {admission.Update, "nodes", "status", []corev1.NodeCondition{unknown, sufficient},
			[]corev1.NodeCondition{condition(OutOfDisk, corev1.ConditionUnknown, unknown.Reason, unknown.Message, later), unknown}},
		"a node without DiskPressure":               {admission.Update, "nodes", "status", []corev1.NodeCondition{ready}, []corev1.NodeCondition{ready}},
		"a request that does not change the status": {admission.Update, "nodes", "", []corev1.NodeCondition{pressure}, []corev1.NodeCondition{pressure}},
		"a registration without conditions":         {admission.Create, "nodes", "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: tt.conditions}}
			attributes := admission.NewAttributesRecord(node, nil, schema.GroupVersionKind{}, "", "n", corev1.SchemeGroupVersion.WithResource(tt.resource), tt.subresource, tt.operation, nil, false, nil)
			if err := (plugin{}).Admit(t.Context(), attributes, nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, node.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
