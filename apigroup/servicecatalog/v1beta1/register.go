package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "servicecatalog.k8s.io"

// GroupVersion returns the group version v1beta1, the only version of the API group.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: GroupName, Version: "v1beta1"}
}

// Install registers the types in a scheme.
func Install(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&ClusterServiceBroker{}, &ClusterServiceBrokerList{}, &ServiceBroker{}, &ServiceBrokerList{},
		&ClusterServiceClass{}, &ClusterServiceClassList{}, &ServiceClass{}, &ServiceClassList{},
		&ClusterServicePlan{}, &ClusterServicePlanList{}, &ServicePlan{}, &ServicePlanList{},
		&ServiceInstance{}, &ServiceInstanceList{}, &ServiceBinding{}, &ServiceBindingList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
