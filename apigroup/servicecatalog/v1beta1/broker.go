package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a deleted object until the broker has confirmed that the corresponding instance
// or binding is deleted.
const Finalizer = "kubernetes-incubator/service-catalog"

// AbandonAnnotation, with the value "true", causes the catalog to delete the object of an instance
// or binding without contacting the broker. The instance or binding might continue to exist at the
// broker.
const AbandonAnnotation = "servicecatalog.k8s.io/abandon"

// ClusterServiceBroker is an Open Service Broker API server that offers services in all namespaces.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceBroker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterServiceBrokerSpec   `json:"spec,omitempty"`
	Status ClusterServiceBrokerStatus `json:"status,omitempty"`
}

// ClusterServiceBrokerList is a list of ClusterServiceBrokers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterServiceBrokerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterServiceBroker `json:"items"`
}

// ServiceBroker is an Open Service Broker API server that offers services in its namespace.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBroker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceBrokerSpec   `json:"spec,omitempty"`
	Status ServiceBrokerStatus `json:"status,omitempty"`
}

// ServiceBrokerList is a list of ServiceBrokers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBrokerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceBroker `json:"items"`
}

// CommonServiceBrokerSpec contains the fields that both broker kinds share.
type CommonServiceBrokerSpec struct {
	// URL is the broker's base URL.
	URL string `json:"url"`
	// InsecureSkipTLSVerify disables the verification of the broker's certificate.
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	// CABundle contains the PEM-encoded CA certificates that are used to verify the broker's
	// certificate.
	CABundle []byte `json:"caBundle,omitempty"`
	// RelistBehavior is Duration (the catalog is fetched again after RelistDuration) or Manual (the
	// catalog is fetched again when RelistRequests increases). The default is Duration.
	RelistBehavior RelistBehavior `json:"relistBehavior"`
	// RelistDuration is the interval between two catalog fetches. The default is 24 hours.
	RelistDuration *metav1.Duration `json:"relistDuration,omitempty"`
	// RelistRequests is a counter. Increase it to fetch the catalog immediately.
	RelistRequests int64 `json:"relistRequests"`
	// CatalogRestrictions limits the classes and plans that are offered.
	CatalogRestrictions *CatalogRestrictions `json:"catalogRestrictions,omitempty"`
}

// RelistBehavior determines when a catalog is fetched again.
type RelistBehavior string

const (
	// RelistBehaviorDuration means that the catalog is fetched periodically.
	RelistBehaviorDuration RelistBehavior = "Duration"
	// RelistBehaviorManual means that the catalog is fetched only when the broker object changes.
	RelistBehaviorManual RelistBehavior = "Manual"
)

// CatalogRestrictions selects classes and plans by requirements such as "spec.externalName in
// (small, large)". All requirements must match.
type CatalogRestrictions struct {
	// ServiceClass lists requirements on classes. The supported fields are name, spec.externalName
	// and spec.externalID.
	ServiceClass []string `json:"serviceClass,omitempty"`
	// ServicePlan lists requirements on plans. The supported fields are name, spec.externalName,
	// spec.externalID, spec.free, and the class name as spec.clusterServiceClass.name or
	// spec.serviceClass.name.
	ServicePlan []string `json:"servicePlan,omitempty"`
}

// ClusterServiceBrokerSpec describes a ClusterServiceBroker.
type ClusterServiceBrokerSpec struct {
	CommonServiceBrokerSpec `json:",inline"`

	// AuthInfo references the broker credentials.
	AuthInfo *ClusterServiceBrokerAuthInfo `json:"authInfo,omitempty"`
}

// ServiceBrokerSpec describes a ServiceBroker.
type ServiceBrokerSpec struct {
	CommonServiceBrokerSpec `json:",inline"`

	// AuthInfo references the broker credentials.
	AuthInfo *ServiceBrokerAuthInfo `json:"authInfo,omitempty"`
}

// ClusterServiceBrokerAuthInfo references broker credentials. Exactly one field must be set.
type ClusterServiceBrokerAuthInfo struct {
	// Basic selects authentication with a username and password.
	Basic *ClusterAuthConfig `json:"basic,omitempty"`
	// Bearer selects authentication with a token.
	Bearer *ClusterAuthConfig `json:"bearer,omitempty"`
}

// ClusterAuthConfig references a secret.
type ClusterAuthConfig struct {
	// SecretRef references the secret. The secret must contain either the username and password keys
	// or the token key.
	SecretRef *ObjectReference `json:"secretRef,omitempty"`
}

// ServiceBrokerAuthInfo references broker credentials. Exactly one field must be set.
type ServiceBrokerAuthInfo struct {
	// Basic selects authentication with a username and password.
	Basic *AuthConfig `json:"basic,omitempty"`
	// Bearer selects authentication with a token.
	Bearer *AuthConfig `json:"bearer,omitempty"`
}

// AuthConfig references a secret in the broker's namespace.
type AuthConfig struct {
	// SecretRef references the secret. The secret must contain either the username and password keys
	// or the token key.
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// Keys of the secrets that contain broker credentials.
const (
	UsernameKey = "username"
	PasswordKey = "password"
	TokenKey    = "token"
)

// CommonServiceBrokerStatus contains the status fields that both broker kinds share.
type CommonServiceBrokerStatus struct {
	// Conditions contains the Ready and Failed conditions.
	Conditions []metav1.Condition `json:"conditions"`
	// ReconciledGeneration is the generation for which the catalog was last fetched.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// OperationStartTime is the time of the first attempt at the current fetch.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// LastCatalogRetrievalTime is the time when the catalog was last fetched.
	LastCatalogRetrievalTime *metav1.Time `json:"lastCatalogRetrievalTime,omitempty"`
	// LastConditionState is the state that tables show.
	LastConditionState string `json:"lastConditionState"`
}

// ClusterServiceBrokerStatus is the status of a ClusterServiceBroker.
type ClusterServiceBrokerStatus struct {
	CommonServiceBrokerStatus `json:",inline"`
}

// ServiceBrokerStatus is the status of a ServiceBroker.
type ServiceBrokerStatus struct {
	CommonServiceBrokerStatus `json:",inline"`
}

// Condition types.
const (
	ConditionReady            = "Ready"
	ConditionFailed           = "Failed"
	ConditionOrphanMitigation = "OrphanMitigation"
)

// ObjectReference contains the name and namespace of an object.
type ObjectReference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// LocalObjectReference contains the name of an object in the same namespace.
type LocalObjectReference struct {
	Name string `json:"name,omitempty"`
}

// ClusterObjectReference contains the name of a cluster-scoped object.
type ClusterObjectReference struct {
	Name string `json:"name,omitempty"`
}

// ParametersFromSource is a source of parameters.
type ParametersFromSource struct {
	// SecretKeyRef selects a secret key. The key's value must be a JSON object that contains
	// parameters.
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`
}

// SecretKeyReference selects a key of a secret in the same namespace.
type SecretKeyReference struct {
	// Name is the name of the secret.
	Name string `json:"name"`
	// Key is the key in the secret.
	Key string `json:"key"`
}
