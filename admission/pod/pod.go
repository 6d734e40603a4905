// Package pod holds admission plugins that check and complete pods by rules of the cluster's administrator: how long pods that run
// once may be active (RunOnceDuration), who may choose nodes (PodNodeConstraints), and how requests of processor and memory follow
// from limits (ClusterResourceOverride). Each of these is on when the configuration has it (admissionConfig.pluginConfig).
// SystemPriority, which keeps the priority classes of the platform for the platform, is always on unless it is disabled.
//
// Source: OpenShift 3.11 Cluster Administration, 7.3 and 16.6, and the reference of 3.11's master configuration.
package pod

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// The plugins' names as the configuration has them.
const (
	RunOnceDuration         = "RunOnceDuration"
	PodNodeConstraints      = "PodNodeConstraints"
	ClusterResourceOverride = "ClusterResourceOverride"
	SystemPriority          = "openshift.io/SystemPriority"
)

// Feature has the plugins.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{
		{Name: RunOnceDuration, Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) { return newDuration(config) }},
		{Name: PodNodeConstraints, Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) { return newConstraints(config) }},
		// In front of the plugin that checks limits, which must see the requests.
		{Name: ClusterResourceOverride, Before: "LimitRanger", Live: true, Optional: true, New: func(config io.Reader) (admission.Interface, error) {
			return newOverride(config)
		}},
		{Name: SystemPriority, New: func(io.Reader) (admission.Interface, error) { return newPriority(), nil }},
	}}
}

// podOf is the pod that a request makes, nil for any other request and for a pod that a node mirrors from a file.
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
