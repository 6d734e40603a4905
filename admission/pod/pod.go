// Package pod contains admission plugins that validate and default pods.
//
// The following plugins are enabled if the configuration contains them
// (admissionConfig.pluginConfig):
//
//   - RunOnceDuration limits how long run-once pods can be active.
//   - PodNodeConstraints restricts which users can select nodes.
//   - ClusterResourceOverride derives CPU and memory requests from limits.
//
// The following plugins are enabled unless the configuration disables them:
//
//   - SystemPriority reserves the system priority classes for the platform.
//   - CrossNamespacePodAffinity restricts the affinity terms that select other projects' pods.
//
// The following plugins are always enabled:
//
//   - PodNetwork checks the annotations that configure a pod's network.
//   - CriticalPod converts the critical pod annotation into a priority class.
//   - PodProxy rejects connections to pods that have ended.
//
// Source: OpenShift 3.11 Cluster Administration, 7.3 and 16.6, and the reference for 3.11's master
// configuration.
package pod

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/mirrorpod"
)

// Names of the plugins in the configuration.
const (
	RunOnceDuration         = "RunOnceDuration"
	PodNodeConstraints      = "PodNodeConstraints"
	ClusterResourceOverride = "ClusterResourceOverride"
	SystemPriority          = "openshift.io/SystemPriority"
	PodNetwork              = "openshift.io/PodNetwork"
	PodProxy                = "openshift.io/PodProxy"
	CriticalPod             = "openshift.io/CriticalPod"

	CrossNamespacePodAffinity = "openshift.io/CrossNamespacePodAffinity"
)

// Feature returns the feature that adds the plugins to the API server.
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
		// CriticalPod runs before Priority, which resolves the class name to its numeric value.
		{Name: CriticalPod, Before: "Priority", New: func(io.Reader) (admission.Interface, error) { return newCritical(), nil }},
		{Name: SystemPriority, New: func(io.Reader) (admission.Interface, error) { return newPriority(), nil }},
		{Name: CrossNamespacePodAffinity, New: func(io.Reader) (admission.Interface, error) { return newAffinity(), nil }},
		{Name: PodNetwork, New: func(io.Reader) (admission.Interface, error) { return newNetwork(), nil }},
		{Name: PodProxy, New: func(io.Reader) (admission.Interface, error) { return newProxy(), nil }},
	}}
}

// podOf returns the pod that a request creates. It returns nil for mirror pods and for other
// requests.
func podOf(a admission.Attributes) *corev1.Pod {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || mirrorpod.Is(pod, a.GetUserInfo()) {
		return nil
	}
	return pod
}
