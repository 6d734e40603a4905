package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterServicePlan is a plan of a cluster service class.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServicePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServicePlanSpec   `json:"spec,omitempty"`
	Status ClusterServicePlanStatus `json:"status,omitempty"`
}

// ClusterServicePlanList is a list of cluster service plans.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServicePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServicePlan `json:"items"`
}

// ServicePlan is a plan of a service class.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServicePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServicePlanSpec   `json:"spec,omitempty"`
	Status ServicePlanStatus `json:"status,omitempty"`
}

// ServicePlanList is a list of service plans.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServicePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServicePlan `json:"items"`
}

// CommonServicePlanSpec contains the fields of both kinds of plans.
type CommonServicePlanSpec struct {
	// ExternalName is the name of the plan in the broker's catalog.
	ExternalName string `json:"externalName"`
	// ExternalID is the ID of the plan in the broker's catalog.
	ExternalID string `json:"externalID"`
	// Description is a short description.
	Description string `json:"description"`
	// Bindable overrides the field of the class.
	Bindable *bool `json:"bindable,omitempty"`
	// Free reports whether the plan is free of charge.
	Free bool `json:"free"`
	// MaintenanceVersion is the version of the software that the plan provisions, if the broker
	// reports one.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// ExternalMetadata is the metadata in the broker's catalog.
	ExternalMetadata *runtime.RawExtension `json:"externalMetadata,omitempty"`
	// InstanceCreateParameterSchema is the JSON schema of the parameters of a new instance.
	InstanceCreateParameterSchema *runtime.RawExtension `json:"instanceCreateParameterSchema,omitempty"`
	// InstanceUpdateParameterSchema is the JSON schema of the parameters of a changed instance.
	InstanceUpdateParameterSchema *runtime.RawExtension `json:"instanceUpdateParameterSchema,omitempty"`
	// ServiceBindingCreateParameterSchema is the JSON schema of the parameters of a binding.
	ServiceBindingCreateParameterSchema *runtime.RawExtension `json:"serviceBindingCreateParameterSchema,omitempty"`
	// DefaultProvisionParameters are defaults of the parameters of instances. They override the
	// class's defaults.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
}

// ClusterServicePlanSpec describes a cluster service plan.
type ClusterServicePlanSpec struct {
	CommonServicePlanSpec `json:",inline"`

	// ClusterServiceBrokerName is the name of the broker.
	ClusterServiceBrokerName string `json:"clusterServiceBrokerName"`
	// ClusterServiceClassRef is the class of the plan.
	ClusterServiceClassRef ClusterObjectReference `json:"clusterServiceClassRef"`
}

// ServicePlanSpec describes a service plan.
type ServicePlanSpec struct {
	CommonServicePlanSpec `json:",inline"`

	// ServiceBrokerName is the name of the broker.
	ServiceBrokerName string `json:"serviceBrokerName"`
	// ServiceClassRef is the class of the plan.
	ServiceClassRef LocalObjectReference `json:"serviceClassRef"`
}

// ClusterServicePlanStatus is the status of a cluster service plan.
type ClusterServicePlanStatus struct {
	CatalogStatus `json:",inline"`
}

// ServicePlanStatus is the status of a service plan.
type ServicePlanStatus struct {
	CatalogStatus `json:",inline"`
}
