package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "automationbroker.io"

// GroupVersion returns the group version v1alpha1, the only version of the API group.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
}

// Install registers the types in a scheme.
func Install(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Bundle{}, &BundleList{}, &BundleInstance{}, &BundleInstanceList{}, &BundleBinding{}, &BundleBindingList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
