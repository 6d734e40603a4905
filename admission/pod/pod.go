// Package pod contains admission plugins that validate and default pods by the cluster
// administrator's rules: how long run-once pods may be active (RunOnceDuration), which users may
// select nodes (PodNodeConstraints), and how CPU and memory requests are derived from limits
// (ClusterResourceOverride). Each of these plugins is enabled if the configuration contains it
// (admissionConfig.pluginConfig).
//
// SystemPriority, which reserves the system priority classes for the platform, and
// CrossNamespacePodAffinity, which restricts affinity to other projects' pods, are enabled unless
// the configuration disables them. PodNetwork, which checks the annotations that configure a pod's
// network, and CriticalPod, which converts the critical pod annotation into a priority class, are
// always enabled.
//
// Source: OpenShift 3.11 Cluster Administration, 7.3 and 16.6, and the reference for 3.11's master
// configuration.
package pod

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// The names of the plugins in the configuration.
const (
	RunOnceDuration         = "RunOnceDuration"
	PodNodeConstraints      = "PodNodeConstraints"
	ClusterResourceOverride = "ClusterResourceOverride"
	SystemPriority          = "openshift.io/SystemPriority"
	PodNetwork              = "openshift.io/PodNetwork"
	CriticalPod             = "openshift.io/CriticalPod"

	CrossNamespacePodAffinity = "openshift.io/CrossNamespacePodAffinity"
)

// Feature returns the plugins.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{
		{Name: RunOnceDuration, Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) {
			return newDuration(config)
		}},
		{Name: PodNodeConstraints, Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) {
			return newConstraints(config)
		}},
		// ClusterResourceOverride runs before LimitRanger, which must check the changed requests.
		{Name: ClusterResourceOverride, Before: "LimitRanger", Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) {
			return newOverride(config)
		}},
		// The Priority plugin resolves the class name to its numeric value.
		{Name: CriticalPod, Before: "Priority", New: func(io.Reader) (admission.Interface, error) { return newCritical(), nil }},
		{Name: SystemPriority, New: func(io.Reader) (admission.Interface, error) { return newPriority(), nil }},
		{Name: CrossNamespacePodAffinity, New: func(io.Reader) (admission.Interface, error) { return newAffinity(), nil }},
		{Name: PodNetwork, New: func(io.Reader) (admission.Interface, error) { return newNetwork(), nil }},
	}}
}

// podOf returns the pod that a request creates. It returns nil for mirror pods and for other
// requests.
func podOf(a admission.Attributes) *corev1.Pod {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	if _, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored {
		return nil
	}
	return pod
}
