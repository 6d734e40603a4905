package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a deleted object until the broker has confirmed the deletion of the instance or
// binding that it represents.
const Finalizer = "kubernetes-incubator/service-catalog"

// AbandonAnnotation, with the value "true", makes the catalog delete an instance or a binding
// without its broker. The broker can keep its instance or binding.
const AbandonAnnotation = "servicecatalog.k8s.io/abandon"

// ClusterServiceBroker is a server of the Open Service Broker API that offers services in all
// namespaces.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceBroker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServiceBrokerSpec   `json:"spec,omitempty"`
	Status ClusterServiceBrokerStatus `json:"status,omitempty"`
}

// ClusterServiceBrokerList is a list of cluster service brokers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceBrokerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServiceBroker `json:"items"`
}

// ServiceBroker is a server of the Open Service Broker API that offers services in its namespace.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBroker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceBrokerSpec   `json:"spec,omitempty"`
	Status ServiceBrokerStatus `json:"status,omitempty"`
}

// ServiceBrokerList is a list of service brokers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBrokerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceBroker `json:"items"`
}

// CommonServiceBrokerSpec contains the fields of both kinds of brokers.
type CommonServiceBrokerSpec struct {
	// URL is the address of the broker.
	URL string `json:"url"`
	// InsecureSkipTLSVerify disables the verification of the broker's certificate.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	// CABundle contains PEM-encoded CA certificates that verify the broker's certificate.
	CABundle []byte `json:"caBundle,omitempty"`
	// RelistBehavior is Duration (the catalog is fetched again after RelistDuration) or Manual (it is
	// fetched again when RelistRequests increases). The default is Duration.
	RelistBehavior RelistBehavior `json:"relistBehavior"`
	// RelistDuration is the interval between two fetches of the catalog. The default is 24 hours.
	RelistDuration *metav1.Duration `json:"relistDuration,omitempty"`
	// RelistRequests is a counter. Increase it to fetch the catalog immediately.
	RelistRequests int64 `json:"relistRequests"`
	// CatalogRestrictions limit the classes and plans that are offered.
	CatalogRestrictions *CatalogRestrictions `json:"catalogRestrictions,omitempty"`
}

// RelistBehavior is when a catalog is fetched again.
type RelistBehavior string

const (
	// RelistBehaviorDuration fetches the catalog in an interval.
	RelistBehaviorDuration RelistBehavior = "Duration"
	// RelistBehaviorManual fetches the catalog when the broker changes.
	RelistBehaviorManual RelistBehavior = "Manual"
)

// CatalogRestrictions select classes and plans by requirements, all of which must match, such as
// "spec.externalName in (small, large)".
type CatalogRestrictions struct {
	// ServiceClass contains requirements of classes: name, spec.externalName, spec.externalID.
	ServiceClass []string `json:"serviceClass,omitempty"`
	// ServicePlan contains requirements of plans: name, spec.externalName, spec.externalID,
	// spec.free, and the name of the class as spec.clusterServiceClass.name or
	// spec.serviceClass.name.
	ServicePlan []string `json:"servicePlan,omitempty"`
}

// ClusterServiceBrokerSpec describes a cluster service broker.
type ClusterServiceBrokerSpec struct {
	CommonServiceBrokerSpec `json:",inline"`

	// AuthInfo refers to the credentials for the broker.
	AuthInfo *ClusterServiceBrokerAuthInfo `json:"authInfo,omitempty"`
}

// ServiceBrokerSpec describes a service broker.
type ServiceBrokerSpec struct {
	CommonServiceBrokerSpec `json:",inline"`

	// AuthInfo refers to the credentials for the broker.
	AuthInfo *ServiceBrokerAuthInfo `json:"authInfo,omitempty"`
}

// ClusterServiceBrokerAuthInfo refers to the credentials for a broker. One field must be set.
type ClusterServiceBrokerAuthInfo struct {
	// Basic authenticates with a user name and a password.
	Basic *ClusterAuthConfig `json:"basic,omitempty"`
	// Bearer authenticates with a token.
	Bearer *ClusterAuthConfig `json:"bearer,omitempty"`
}

// ClusterAuthConfig refers to a secret.
type ClusterAuthConfig struct {
	// SecretRef is the secret. It has the keys username and password, or token.
	SecretRef *ObjectReference `json:"secretRef,omitempty"`
}

// ServiceBrokerAuthInfo refers to the credentials for a broker. One field must be set.
type ServiceBrokerAuthInfo struct {
	// Basic authenticates with a user name and a password.
	Basic *AuthConfig `json:"basic,omitempty"`
	// Bearer authenticates with a token.
	Bearer *AuthConfig `json:"bearer,omitempty"`
}

// AuthConfig refers to a secret in the namespace of the broker.
type AuthConfig struct {
	// SecretRef is the secret. It has the keys username and password, or token.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// Keys of the secrets that contain credentials for brokers.
const (
	UsernameKey = "username"
	PasswordKey = "password"
	TokenKey    = "token"
)

// CommonServiceBrokerStatus contains the status of both kinds of brokers.
type CommonServiceBrokerStatus struct {
	// Conditions are Ready and Failed.
	Conditions []metav1.Condition `json:"conditions"`
	// ReconciledGeneration is the generation for which the catalog was fetched.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// OperationStartTime is the time of the first attempt of the current fetch.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// LastCatalogRetrievalTime is the time when the catalog was fetched.
	LastCatalogRetrievalTime *metav1.Time `json:"lastCatalogRetrievalTime,omitempty"`
	// LastConditionState is the state for tables.
	LastConditionState string `json:"lastConditionState"`
}

// ClusterServiceBrokerStatus is the status of a cluster service broker.
type ClusterServiceBrokerStatus struct {
	CommonServiceBrokerStatus `json:",inline"`
}

// ServiceBrokerStatus is the status of a service broker.
type ServiceBrokerStatus struct {
	CommonServiceBrokerStatus `json:",inline"`
}

// Types of conditions.
const (
	ConditionReady            = "Ready"
	ConditionFailed           = "Failed"
	ConditionOrphanMitigation = "OrphanMitigation"
)

// ObjectReference is the name of an object in a namespace.
type ObjectReference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// LocalObjectReference is the name of an object in the same namespace.
type LocalObjectReference struct {
	Name string `json:"name,omitempty"`
}

// ClusterObjectReference is the name of a cluster-scoped object.
type ClusterObjectReference struct {
	Name string `json:"name,omitempty"`
}

// ParametersFromSource is a source of parameters.
type ParametersFromSource struct {
	// SecretKeyRef is a key of a secret. Its value is a JSON object with parameters.
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`
}

// SecretKeyReference is a key of a secret in the same namespace.
type SecretKeyReference struct {
	// Name is the name of the secret.
	Name string `json:"name"`
	// Key is the key in the secret.
	Key string `json:"key"`
}
