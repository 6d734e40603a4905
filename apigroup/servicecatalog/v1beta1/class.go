package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterServiceClass is a service of a cluster service broker.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServiceClassSpec   `json:"spec,omitempty"`
	Status ClusterServiceClassStatus `json:"status,omitempty"`
}

// ClusterServiceClassList is a list of cluster service classes.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServiceClass `json:"items"`
}

// ServiceClass is a service of a service broker.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceClassSpec   `json:"spec,omitempty"`
	Status ServiceClassStatus `json:"status,omitempty"`
}

// ServiceClassList is a list of service classes.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceClass `json:"items"`
}

// CommonServiceClassSpec contains the fields of both kinds of classes.
type CommonServiceClassSpec struct {
	// ExternalName is the name of the service in the broker's catalog.
	ExternalName string `json:"externalName"`
	// ExternalID is the ID of the service in the broker's catalog.
	ExternalID string `json:"externalID"`
	// Description is a short description.
	Description string `json:"description"`
	// Bindable reports whether instances can be bound. A plan can override it.
	Bindable bool `json:"bindable"`
	// BindingRetrievable reports whether the broker returns existing bindings.
	BindingRetrievable bool `json:"bindingRetrievable"`
	// InstancesRetrievable reports whether the broker returns existing instances.
	InstancesRetrievable bool `json:"instancesRetrievable,omitempty"`
	// PlanUpdatable reports whether the plan of an instance can change.
	PlanUpdatable bool `json:"planUpdatable"`
	// ExternalMetadata is the metadata in the broker's catalog, such as a display name.
	ExternalMetadata *runtime.RawExtension `json:"externalMetadata,omitempty"`
	// Tags are the tags in the broker's catalog.
	Tags []string `json:"tags,omitempty"`
	// Requires contains permissions that the service needs on its platform.
	Requires []string `json:"requires,omitempty"`
	// DefaultProvisionParameters are defaults of the parameters of instances.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
}

// ClusterServiceClassSpec describes a cluster service class.
type ClusterServiceClassSpec struct {
	CommonServiceClassSpec `json:",inline"`

	// ClusterServiceBrokerName is the name of the broker.
	ClusterServiceBrokerName string `json:"clusterServiceBrokerName"`
}

// ServiceClassSpec describes a service class.
type ServiceClassSpec struct {
	CommonServiceClassSpec `json:",inline"`

	// ServiceBrokerName is the name of the broker.
	ServiceBrokerName string `json:"serviceBrokerName"`
}

// CatalogStatus is the status of classes and plans.
type CatalogStatus struct {
	// RemovedFromBrokerCatalog reports that the broker no longer offers the class or plan.
	RemovedFromBrokerCatalog bool `json:"removedFromBrokerCatalog"`
}

// ClusterServiceClassStatus is the status of a cluster service class.
type ClusterServiceClassStatus struct {
	CatalogStatus `json:",inline"`
}

// ServiceClassStatus is the status of a service class.
type ServiceClassStatus struct {
	CatalogStatus `json:",inline"`
}
