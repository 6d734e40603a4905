package v1beta1

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceBinding is a binding to an instance. Its credentials are stored in a secret.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceBindingSpec   `json:"spec,omitempty"`
	Status ServiceBindingStatus `json:"status,omitempty"`
}

// ServiceBindingList is a list of service bindings.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceBinding `json:"items"`
}

// ServiceBindingSpec describes a binding. After a binding is created, only its metadata can change.
type ServiceBindingSpec struct {
	// InstanceRef references the instance.
	InstanceRef LocalObjectReference `json:"instanceRef"`
	// Parameters contains the parameters that are sent to the broker. They are not secret.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParametersFrom lists secrets that contain additional parameters.
	ParametersFrom []ParametersFromSource `json:"parametersFrom,omitempty"`
	// SecretName is the name of the secret to create. The default is the binding name.
	SecretName string `json:"secretName,omitempty"`
	// SecretTransforms lists changes to the credentials. They are applied in order before the
	// credentials are stored.
	SecretTransforms []SecretTransform `json:"secretTransforms,omitempty"`
	// ExternalID is the binding ID that is sent to the broker. The default is a UUID.
	ExternalID string `json:"externalID"`
	// UserInfo is the user who created the binding. The server sets it.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}

// ServiceBindingStatus is the status of a binding.
type ServiceBindingStatus struct {
	// Conditions contains the Ready and Failed conditions.
	Conditions []metav1.Condition `json:"conditions"`
	// AsyncOpInProgress indicates whether the broker is working on CurrentOperation, which the catalog
	// polls.
	AsyncOpInProgress bool `json:"asyncOpInProgress"`
	// LastOperation is the operation ID that the broker returned.
	LastOperation *string `json:"lastOperation,omitempty"`
	// CurrentOperation is the operation in progress.
	CurrentOperation BindingOperation `json:"currentOperation,omitempty"`
	// ReconciledGeneration is the generation of the last operation that finished.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// OperationStartTime is the time when CurrentOperation started.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// InProgressProperties contains the properties that CurrentOperation requests.
	InProgressProperties *ServiceBindingPropertiesState `json:"inProgressProperties,omitempty"`
	// ExternalProperties contains the properties that the broker has confirmed.
	ExternalProperties *ServiceBindingPropertiesState `json:"externalProperties,omitempty"`
	// OrphanMitigationInProgress indicates whether the catalog is deleting a binding that a failed
	// request might have created.
	OrphanMitigationInProgress bool `json:"orphanMitigationInProgress"`
	// UnbindStatus indicates whether the broker must delete the binding before the object is deleted.
	UnbindStatus DeletionStatus `json:"unbindStatus"`
	// LastConditionState is the state that tables show.
	LastConditionState string `json:"lastConditionState"`
}

// BindingOperation is an operation on a binding.
type BindingOperation string

// Operations on bindings.
const (
	OperationBind   BindingOperation = "Bind"
	OperationUnbind BindingOperation = "Unbind"
)

// ServiceBindingPropertiesState contains the properties that an operation requests or that the
// broker has confirmed. Parameter values from secrets are redacted.
type ServiceBindingPropertiesState struct {
	// Parameters contains the parameters, with secret values redacted.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParameterChecksum is a SHA-256 checksum of all parameters.
	ParameterChecksum string `json:"parameterChecksum,omitempty"`
	// UserInfo is the user who originated the request.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}

// SecretTransform changes credentials. Exactly one field must be set.
type SecretTransform struct {
	// RenameKey renames a key.
	RenameKey *RenameKeyTransform `json:"renameKey,omitempty"`
	// AddKey adds a key.
	AddKey *AddKeyTransform `json:"addKey,omitempty"`
	// AddKeysFrom adds all keys of a secret.
	AddKeysFrom *AddKeysFromTransform `json:"addKeysFrom,omitempty"`
	// RemoveKey removes a key.
	RemoveKey *RemoveKeyTransform `json:"removeKey,omitempty"`
}

// RenameKeyTransform renames a key. It is a no-op if the key does not exist.
type RenameKeyTransform struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// AddKeyTransform adds a key or replaces its value. Only one of Value, StringValue and
// JSONPathExpression is used.
type AddKeyTransform struct {
	Key   string `json:"key"`
	Value []byte `json:"value,omitempty"`
	// StringValue is the value as a string.
	StringValue *string `json:"stringValue,omitempty"`
	// JSONPathExpression selects the value from the broker's credentials, such as "{.host}".
	JSONPathExpression *string `json:"jsonPathExpression,omitempty"`
}

// AddKeysFromTransform adds all keys of a secret. The secret must be in the binding's namespace.
type AddKeysFromTransform struct {
	SecretRef *ObjectReference `json:"secretRef,omitempty"`
}

// RemoveKeyTransform removes a key.
type RemoveKeyTransform struct {
	Key string `json:"key"`
}
