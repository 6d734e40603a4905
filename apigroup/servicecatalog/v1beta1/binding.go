package v1beta1

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceBinding is a binding to an instance. Its credentials are in a secret.
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

// ServiceBindingSpec describes a binding. Only metadata can change after its creation.
type ServiceBindingSpec struct {
	// InstanceRef is the instance.
	InstanceRef LocalObjectReference `json:"instanceRef"`
	// Parameters are the parameters for the broker. They are not secret.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParametersFrom are secrets with further parameters.
	ParametersFrom []ParametersFromSource `json:"parametersFrom,omitempty"`
	// SecretName is the name of the secret to create. The default is the name of the binding.
	SecretName string `json:"secretName,omitempty"`
	// SecretTransforms change the credentials, in this order, before they are stored.
	SecretTransforms []SecretTransform `json:"secretTransforms,omitempty"`
	// ExternalID is the ID of the binding for the broker. The default is a UUID.
	ExternalID string `json:"externalID"`
	// UserInfo is the user who created the binding. The server sets it.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}

// ServiceBindingStatus is the status of a binding.
type ServiceBindingStatus struct {
	// Conditions are Ready and Failed.
	Conditions []metav1.Condition `json:"conditions"`
	// AsyncOpInProgress reports that the broker works on CurrentOperation, which the catalog polls.
	AsyncOpInProgress bool `json:"asyncOpInProgress"`
	// LastOperation is the operation ID that the broker returned.
	LastOperation *string `json:"lastOperation,omitempty"`
	// CurrentOperation is the operation in progress.
	CurrentOperation BindingOperation `json:"currentOperation,omitempty"`
	// ReconciledGeneration is the generation of the last operation that ended.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// OperationStartTime is the time when CurrentOperation started.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// InProgressProperties are the properties that CurrentOperation requests.
	InProgressProperties *ServiceBindingPropertiesState `json:"inProgressProperties,omitempty"`
	// ExternalProperties are the properties that the broker has confirmed.
	ExternalProperties *ServiceBindingPropertiesState `json:"externalProperties,omitempty"`
	// OrphanMitigationInProgress reports that the catalog deletes a binding that a failed request
	// might have created.
	OrphanMitigationInProgress bool `json:"orphanMitigationInProgress"`
	// UnbindStatus reports whether the broker must be called before the object is deleted.
	UnbindStatus DeletionStatus `json:"unbindStatus"`
	// LastConditionState is the state for tables.
	LastConditionState string `json:"lastConditionState"`
}

// BindingOperation is an operation on a binding.
type BindingOperation string

// The operations on bindings.
const (
	OperationBind   BindingOperation = "Bind"
	OperationUnbind BindingOperation = "Unbind"
)

// ServiceBindingPropertiesState contains the properties that an operation requests or a broker has
// confirmed. Values of parameters from secrets are replaced.
type ServiceBindingPropertiesState struct {
	// Parameters are the parameters without secret values.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParameterChecksum is a SHA-256 checksum of all parameters.
	ParameterChecksum string `json:"parameterChecksum,omitempty"`
	// UserInfo is the originator.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}

// SecretTransform changes credentials. One field must be set.
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

// RenameKeyTransform renames a key. It changes nothing if the key does not exist.
type RenameKeyTransform struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// AddKeyTransform adds a key, or replaces its value. Value, StringValue and JSONPathExpression are
// alternatives.
type AddKeyTransform struct {
	Key   string `json:"key"`
	Value []byte `json:"value,omitempty"`
	// StringValue is the value as text.
	StringValue *string `json:"stringValue,omitempty"`
	// JSONPathExpression selects the value from the credentials of the broker, such as "{.host}".
	JSONPathExpression *string `json:"jsonPathExpression,omitempty"`
}

// AddKeysFromTransform adds all keys of a secret, which must be in the namespace of the binding.
type AddKeysFromTransform struct {
	SecretRef *ObjectReference `json:"secretRef,omitempty"`
}

// RemoveKeyTransform removes a key.
type RemoveKeyTransform struct {
	Key string `json:"key"`
}
