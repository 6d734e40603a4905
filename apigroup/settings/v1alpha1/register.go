package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "settings.k8s.io"

// GroupVersion returns the API group's only version.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// Install registers the types in a scheme.
func Install(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &PodPreset{}, &PodPresetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
