package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterServiceClass is a service that a ClusterServiceBroker offers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServiceClassSpec   `json:"spec,omitempty"`
	Status ClusterServiceClassStatus `json:"status,omitempty"`
}

// ClusterServiceClassList is a list of ClusterServiceClasses.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServiceClass `json:"items"`
}

// ServiceClass is a service that a ServiceBroker offers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceClassSpec   `json:"spec,omitempty"`
	Status ServiceClassStatus `json:"status,omitempty"`
}

// ServiceClassList is a list of ServiceClasses.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceClass `json:"items"`
}

// CommonServiceClassSpec contains the fields that both class kinds share.
type CommonServiceClassSpec struct {
	// ExternalName is the service name in the broker's catalog.
	ExternalName string `json:"externalName"`
	// ExternalID is the service ID in the broker's catalog.
	ExternalID string `json:"externalID"`
	// Description is a short description of the service.
	Description string `json:"description"`
	// Bindable indicates whether instances can be bound. A plan can override this field.
	Bindable bool `json:"bindable"`
	// BindingRetrievable indicates whether existing bindings can be retrieved from the broker.
	BindingRetrievable bool `json:"bindingRetrievable"`
	// InstancesRetrievable indicates whether existing instances can be retrieved from the broker.
	InstancesRetrievable bool `json:"instancesRetrievable,omitempty"`
	// PlanUpdatable indicates whether an instance's plan can change.
	PlanUpdatable bool `json:"planUpdatable"`
	// ExternalMetadata is the metadata in the broker's catalog, such as a display name.
	ExternalMetadata *runtime.RawExtension `json:"externalMetadata,omitempty"`
	// Tags are the tags in the broker's catalog.
	Tags []string `json:"tags,omitempty"`
	// Requires lists the permissions that the service requires on its platform.
	Requires []string `json:"requires,omitempty"`
	// DefaultProvisionParameters contains default parameters for instances.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
}

// ClusterServiceClassSpec describes a ClusterServiceClass.
type ClusterServiceClassSpec struct {
	CommonServiceClassSpec `json:",inline"`

	// ClusterServiceBrokerName is the broker name.
	ClusterServiceBrokerName string `json:"clusterServiceBrokerName"`
}

// ServiceClassSpec describes a ServiceClass.
type ServiceClassSpec struct {
	CommonServiceClassSpec `json:",inline"`

	// ServiceBrokerName is the broker name.
	ServiceBrokerName string `json:"serviceBrokerName"`
}

// CatalogStatus contains the status fields of classes and plans.
type CatalogStatus struct {
	// RemovedFromBrokerCatalog indicates whether the broker no longer offers the class or plan.
	RemovedFromBrokerCatalog bool `json:"removedFromBrokerCatalog"`
}

// ClusterServiceClassStatus is the status of a ClusterServiceClass.
type ClusterServiceClassStatus struct {
	CatalogStatus `json:",inline"`
}

// ServiceClassStatus is the status of a ServiceClass.
type ServiceClassStatus struct {
	CatalogStatus `json:",inline"`
}
