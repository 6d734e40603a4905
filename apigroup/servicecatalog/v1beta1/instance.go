package v1beta1

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceInstance is an instance of a service, which a broker provisions.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceInstanceSpec   `json:"spec,omitempty"`
	Status ServiceInstanceStatus `json:"status,omitempty"`
}

// ServiceInstanceList is a list of service instances.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceInstance `json:"items"`
}

// PlanReference names a class and a plan: by external name, by external ID or by the name of the
// object, each for cluster-scoped and for namespaced classes. One pair must be set; if the class
// has only one plan, the plan can be omitted.
type PlanReference struct {
	ClusterServiceClassExternalName string `json:"clusterServiceClassExternalName,omitempty"`
	ClusterServicePlanExternalName  string `json:"clusterServicePlanExternalName,omitempty"`
	ClusterServiceClassExternalID   string `json:"clusterServiceClassExternalID,omitempty"`
	ClusterServicePlanExternalID    string `json:"clusterServicePlanExternalID,omitempty"`
	ClusterServiceClassName         string `json:"clusterServiceClassName,omitempty"`
	ClusterServicePlanName          string `json:"clusterServicePlanName,omitempty"`
	ServiceClassExternalName        string `json:"serviceClassExternalName,omitempty"`
	ServicePlanExternalName         string `json:"servicePlanExternalName,omitempty"`
	ServiceClassExternalID          string `json:"serviceClassExternalID,omitempty"`
	ServicePlanExternalID           string `json:"servicePlanExternalID,omitempty"`
	ServiceClassName                string `json:"serviceClassName,omitempty"`
	ServicePlanName                 string `json:"servicePlanName,omitempty"`
}

// ServiceInstanceSpec describes an instance.
type ServiceInstanceSpec struct {
	PlanReference `json:",inline"`

	// ClusterServiceClassRef and the following references are the objects that PlanReference names.
	// The catalog sets them through the subresource reference.
	ClusterServiceClassRef *ClusterObjectReference `json:"clusterServiceClassRef,omitempty"`
	ClusterServicePlanRef  *ClusterObjectReference `json:"clusterServicePlanRef,omitempty"`
	ServiceClassRef        *LocalObjectReference   `json:"serviceClassRef,omitempty"`
	ServicePlanRef         *LocalObjectReference   `json:"servicePlanRef,omitempty"`

	// Parameters are the parameters for the broker. They are not secret.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParametersFrom are secrets with further parameters. Each parameter must have one source only.
	ParametersFrom []ParametersFromSource `json:"parametersFrom,omitempty"`
	// ExternalID is the ID of the instance for the broker. The default is a UUID. It cannot change.
	ExternalID string `json:"externalID"`
	// UserInfo is the user who created or last changed the instance. The server sets it.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
	// UpdateRequests is a counter. Increase it to send an update to the broker although no other
	// field changes, for instance because a secret in ParametersFrom has changed.
	UpdateRequests int64 `json:"updateRequests"`
}

// ServiceInstanceStatus is the status of an instance.
type ServiceInstanceStatus struct {
	// Conditions are Ready, Failed and OrphanMitigation.
	Conditions []metav1.Condition `json:"conditions"`
	// AsyncOpInProgress reports that the broker works on CurrentOperation, which the catalog polls.
	AsyncOpInProgress bool `json:"asyncOpInProgress"`
	// OrphanMitigationInProgress reports that the catalog deprovisions an instance that a failed
	// request might have created.
	OrphanMitigationInProgress bool `json:"orphanMitigationInProgress"`
	// LastOperation is the operation ID that the broker returned.
	LastOperation *string `json:"lastOperation,omitempty"`
	// DashboardURL is the address of the instance's dashboard.
	DashboardURL *string `json:"dashboardURL,omitempty"`
	// CurrentOperation is the operation in progress.
	CurrentOperation InstanceOperation `json:"currentOperation,omitempty"`
	// ReconciledGeneration is the generation of the last operation that ended.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// ObservedGeneration is the generation of the last operation that started.
	ObservedGeneration int64 `json:"observedGeneration"`
	// OperationStartTime is the time when CurrentOperation started.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// InProgressProperties are what CurrentOperation requests.
	InProgressProperties *ServiceInstancePropertiesState `json:"inProgressProperties,omitempty"`
	// ExternalProperties are what the broker has confirmed.
	ExternalProperties *ServiceInstancePropertiesState `json:"externalProperties,omitempty"`
	// ProvisionStatus reports whether the instance exists.
	ProvisionStatus ProvisionStatus `json:"provisionStatus"`
	// DeprovisionStatus reports whether the broker must be called before the object is deleted.
	DeprovisionStatus DeletionStatus `json:"deprovisionStatus"`
	// DefaultProvisionParameters are the defaults that were used.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
	// LastConditionState is the state for tables.
	LastConditionState string `json:"lastConditionState"`
	// UserSpecifiedPlanName and UserSpecifiedClassName are the names for tables.
	UserSpecifiedPlanName  string `json:"userSpecifiedPlanName"`
	UserSpecifiedClassName string `json:"userSpecifiedClassName"`
}

// InstanceOperation is an operation on an instance.
type InstanceOperation string

// The operations on instances.
const (
	OperationProvision   InstanceOperation = "Provision"
	OperationUpdate      InstanceOperation = "Update"
	OperationDeprovision InstanceOperation = "Deprovision"
)

// ProvisionStatus reports whether an instance exists.
type ProvisionStatus string

// The provision states.
const (
	Provisioned    ProvisionStatus = "Provisioned"
	NotProvisioned ProvisionStatus = "NotProvisioned"
)

// DeletionStatus reports whether the broker must delete what an object represents.
type DeletionStatus string

// The deletion states.
const (
	DeletionNotRequired DeletionStatus = "NotRequired"
	DeletionRequired    DeletionStatus = "Required"
	DeletionSucceeded   DeletionStatus = "Succeeded"
	DeletionFailed      DeletionStatus = "Failed"
)

// ServiceInstancePropertiesState contains the properties that an operation requests or a broker has
// confirmed. Values of parameters from secrets are replaced.
type ServiceInstancePropertiesState struct {
	ClusterServicePlanExternalName string `json:"clusterServicePlanExternalName"`
	ClusterServicePlanExternalID   string `json:"clusterServicePlanExternalID"`
	ServicePlanExternalName        string `json:"servicePlanExternalName,omitempty"`
	ServicePlanExternalID          string `json:"servicePlanExternalID,omitempty"`
	// MaintenanceVersion is the version of the software that the plan provisions.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// Parameters are the parameters without secret values.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParameterChecksum is a SHA-256 checksum of all parameters.
	ParameterChecksum string `json:"parameterChecksum,omitempty"`
	// UserInfo is the originator.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}
