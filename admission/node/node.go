// Package node adds the OutOfDisk condition to Node objects. OpenShift 3 clients read this
// condition, but Kubernetes no longer sets it. OutOfDisk has the same status as DiskPressure, which
// prevents the scheduler from placing pods on the node.
//
// Source: OpenShift 3.11 Cluster Administration, 2.1 and 16.2.2.
package node

import (
	"context"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/OutOfDisk"

// OutOfDisk is the condition type of a node that has no space for more pods.
const OutOfDisk corev1.NodeConditionType = "OutOfDisk"

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) {
			return plugin{admission.NewHandler(admission.Create, admission.Update)}, nil
		},
	}}}
}

// plugin is the admission plugin that adds the condition.
type plugin struct{ *admission.Handler }

var _ admission.MutationInterface = plugin{}

// Admit sets the condition in requests that register a node or update its status.
func (plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("nodes") || a.GetOperation() == admission.Update && a.GetSubresource() != "status" {
		return nil
	}
	if node, ok := a.GetObject().(*corev1.Node); ok {
		node.Status.Conditions = withOutOfDisk(node.Status.Conditions)
	}
	return nil
}

// withOutOfDisk returns conditions with OutOfDisk first, as in 3.11. It returns conditions without
// DiskPressure unchanged.
func withOutOfDisk(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	index := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeDiskPressure })
	if index < 0 {
		return conditions
	}
	outOfDisk := conditions[index]
	outOfDisk.Type = OutOfDisk
	switch outOfDisk.Status {
	case corev1.ConditionFalse:
		outOfDisk.Reason, outOfDisk.Message = "KubeletHasSufficientDisk", "kubelet has sufficient disk space available"
	case corev1.ConditionTrue:
		outOfDisk.Reason, outOfDisk.Message = "KubeletOutOfDisk", "out of disk space"
	}
	others := slices.DeleteFunc(slices.Clone(conditions), func(c corev1.NodeCondition) bool { return c.Type == OutOfDisk })
	return slices.Insert(others, 0, outOfDisk)
}
