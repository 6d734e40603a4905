package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterServicePlan is a plan for a ClusterServiceClass.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServicePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServicePlanSpec   `json:"spec,omitempty"`
	Status ClusterServicePlanStatus `json:"status,omitempty"`
}

// ClusterServicePlanList is a list of ClusterServicePlans.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServicePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServicePlan `json:"items"`
}

// ServicePlan is a plan for a ServiceClass.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServicePlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServicePlanSpec   `json:"spec,omitempty"`
	Status ServicePlanStatus `json:"status,omitempty"`
}

// ServicePlanList is a list of ServicePlans.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServicePlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServicePlan `json:"items"`
}

// CommonServicePlanSpec contains the fields that both plan kinds share.
type CommonServicePlanSpec struct {
	// ExternalName is the plan name in the broker's catalog.
	ExternalName string `json:"externalName"`
	// ExternalID is the plan ID in the broker's catalog.
	ExternalID string `json:"externalID"`
	// Description is a short description of the plan.
	Description string `json:"description"`
	// Bindable overrides the class's Bindable field.
	Bindable *bool `json:"bindable,omitempty"`
	// Free indicates whether the plan is free of charge.
	Free bool `json:"free"`
	// MaintenanceVersion is the version of the software that the plan provisions, if the broker
	// reports one.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// PlanUpdatable overrides the class's PlanUpdatable field for instances that have this plan.
	PlanUpdatable *bool `json:"planUpdatable,omitempty"`
	// MaximumPollingDurationSeconds is the time after which an asynchronous operation that has not
	// ended has failed. By default, it is seven days.
	MaximumPollingDurationSeconds int64 `json:"maximumPollingDurationSeconds,omitempty"`
	// ExternalMetadata is the metadata in the broker's catalog.
	ExternalMetadata *runtime.RawExtension `json:"externalMetadata,omitempty"`
	// InstanceCreateParameterSchema is the JSON schema for the parameters of a new instance.
	InstanceCreateParameterSchema *runtime.RawExtension `json:"instanceCreateParameterSchema,omitempty"`
	// InstanceUpdateParameterSchema is the JSON schema for the parameters of an instance update.
	InstanceUpdateParameterSchema *runtime.RawExtension `json:"instanceUpdateParameterSchema,omitempty"`
	// ServiceBindingCreateParameterSchema is the JSON schema for the parameters of a new binding.
	ServiceBindingCreateParameterSchema *runtime.RawExtension `json:"serviceBindingCreateParameterSchema,omitempty"`
	// DefaultProvisionParameters contains default parameters for instances. They take precedence
	// over the class's defaults.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
}

// ClusterServicePlanSpec describes a ClusterServicePlan.
type ClusterServicePlanSpec struct {
	CommonServicePlanSpec `json:",inline"`

	// ClusterServiceBrokerName is the broker name.
	ClusterServiceBrokerName string `json:"clusterServiceBrokerName"`
	// ClusterServiceClassRef references the plan's class.
	ClusterServiceClassRef ClusterObjectReference `json:"clusterServiceClassRef"`
}

// ServicePlanSpec describes a ServicePlan.
type ServicePlanSpec struct {
	CommonServicePlanSpec `json:",inline"`

	// ServiceBrokerName is the broker name.
	ServiceBrokerName string `json:"serviceBrokerName"`
	// ServiceClassRef references the plan's class.
	ServiceClassRef LocalObjectReference `json:"serviceClassRef"`
}

// ClusterServicePlanStatus is the status of a ClusterServicePlan.
type ClusterServicePlanStatus struct {
	CatalogStatus `json:",inline"`
}

// ServicePlanStatus is the status of a ServicePlan.
type ServicePlanStatus struct {
	CatalogStatus `json:",inline"`
}
