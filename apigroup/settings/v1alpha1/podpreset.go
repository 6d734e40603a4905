package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodPreset contains settings that the API server adds to new pods with certain labels in the
// PodPreset's project.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PodPreset struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodPresetSpec `json:"spec,omitempty"`
}

// PodPresetList is a list of pod presets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PodPresetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodPreset `json:"items"`
}

// PodPresetSpec selects pods and contains additional settings for them.
type PodPresetSpec struct {
	// Selector selects pods by their labels. An empty selector selects all pods.
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	// Env lists environment variables for each container.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom lists sources of environment variables for each container.
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Volumes lists volumes for the pod.
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts lists volume mounts for each container.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}
