package pod

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// criticalAnnotation marks a pod as critical if its value is "" or "true".
const criticalAnnotation = "scheduler.alpha.kubernetes.io/critical-pod"

// clusterCritical is the priority class of pods that are critical for the cluster.
const clusterCritical = "system-cluster-critical"

// critical is the CriticalPod plugin. If criticalAnnotation marks a new pod in a platform namespace
// as critical, the plugin sets the pod's priority class to system-cluster-critical, unless the pod
// specifies a class. In other namespaces, the annotation has no effect, because any user can set
// it.
//
// Source: OpenShift 3.11 Cluster Administration, 16.6.2.1. Kubernetes removed the conversion in
// 1.16.
type critical struct{ *admission.Handler }

var _ admission.MutationInterface = critical{}

func newCritical() critical { return critical{admission.NewHandler(admission.Create)} }

// Admit sets the pod's priority class.
func (critical) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil || pod.Spec.PriorityClassName != "" || !platformNamespace(a.GetNamespace()) {
		return nil
	}
	if value, ok := pod.Annotations[criticalAnnotation]; ok && (value == "" || value == "true") {
		pod.Spec.PriorityClassName = clusterCritical
	}
	return nil
}
