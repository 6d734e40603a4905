package v1beta1

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ServiceInstance is a service instance that a broker provisions.
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

// PlanReference references a class and a plan by external name, by external ID or by object name,
// for either cluster-scoped or namespaced classes. One pair of fields must be set. If the class has
// only one plan, the plan field can be omitted.
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

	// ClusterServiceClassRef and the fields that follow reference the objects that PlanReference
	// selects. The catalog sets them through the reference subresource.
	ClusterServiceClassRef *ClusterObjectReference `json:"clusterServiceClassRef,omitempty"`
	ClusterServicePlanRef  *ClusterObjectReference `json:"clusterServicePlanRef,omitempty"`
	ServiceClassRef        *LocalObjectReference   `json:"serviceClassRef,omitempty"`
	ServicePlanRef         *LocalObjectReference   `json:"servicePlanRef,omitempty"`

	// Parameters contains the parameters that are sent to the broker. They are not secret.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParametersFrom lists secrets that contain additional parameters. Each parameter must have
	// only one source.
	ParametersFrom []ParametersFromSource `json:"parametersFrom,omitempty"`
	// ExternalID is the instance ID that is sent to the broker. The default is a UUID. ExternalID
	// is immutable.
	ExternalID string `json:"externalID"`
	// UserInfo is the user who created or last changed the instance. The server sets it.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
	// UpdateRequests is a counter. Increase it to send an update to the broker even though no other
	// field has changed, for example because a secret in ParametersFrom has changed.
	UpdateRequests int64 `json:"updateRequests"`
}

// ServiceInstanceStatus is the status of an instance.
type ServiceInstanceStatus struct {
	// Conditions contains the Ready, Failed and OrphanMitigation conditions.
	Conditions []metav1.Condition `json:"conditions"`
	// AsyncOpInProgress indicates whether the broker is working on CurrentOperation, which the catalog
	// polls.
	AsyncOpInProgress bool `json:"asyncOpInProgress"`
	// OrphanMitigationInProgress indicates whether the catalog is deprovisioning an instance that a
	// failed request might have created.
	OrphanMitigationInProgress bool `json:"orphanMitigationInProgress"`
	// LastOperation is the operation ID that the broker returned.
	LastOperation *string `json:"lastOperation,omitempty"`
	// DashboardURL is the URL of the instance's dashboard.
	DashboardURL *string `json:"dashboardURL,omitempty"`
	// CurrentOperation is the operation in progress.
	CurrentOperation InstanceOperation `json:"currentOperation,omitempty"`
	// ReconciledGeneration is the generation of the last operation that finished.
	ReconciledGeneration int64 `json:"reconciledGeneration"`
	// ObservedGeneration is the generation of the last operation that started.
	ObservedGeneration int64 `json:"observedGeneration"`
	// OperationStartTime is the time when CurrentOperation started.
	OperationStartTime *metav1.Time `json:"operationStartTime,omitempty"`
	// InProgressProperties contains the properties that CurrentOperation requests.
	InProgressProperties *ServiceInstancePropertiesState `json:"inProgressProperties,omitempty"`
	// ExternalProperties contains the properties that the broker has confirmed.
	ExternalProperties *ServiceInstancePropertiesState `json:"externalProperties,omitempty"`
	// ProvisionStatus indicates whether the instance exists.
	ProvisionStatus ProvisionStatus `json:"provisionStatus"`
	// DeprovisionStatus indicates whether the broker must delete the instance before the object is
	// deleted.
	DeprovisionStatus DeletionStatus `json:"deprovisionStatus"`
	// DefaultProvisionParameters contains the default parameters that were used.
	DefaultProvisionParameters *runtime.RawExtension `json:"defaultProvisionParameters,omitempty"`
	// LastConditionState is the state that tables show.
	LastConditionState string `json:"lastConditionState"`
	// UserSpecifiedPlanName and UserSpecifiedClassName are the plan and class names that tables
	// show.
	UserSpecifiedPlanName  string `json:"userSpecifiedPlanName"`
	UserSpecifiedClassName string `json:"userSpecifiedClassName"`
}

// InstanceOperation is an operation on an instance.
type InstanceOperation string

// Operations on instances.
const (
	OperationProvision   InstanceOperation = "Provision"
	OperationUpdate      InstanceOperation = "Update"
	OperationDeprovision InstanceOperation = "Deprovision"
)

// ProvisionStatus indicates whether an instance exists.
type ProvisionStatus string

// The provision states.
const (
	Provisioned    ProvisionStatus = "Provisioned"
	NotProvisioned ProvisionStatus = "NotProvisioned"
)

// DeletionStatus indicates whether the broker must delete the instance or binding that an object
// represents.
type DeletionStatus string

// The deletion states.
const (
	DeletionNotRequired DeletionStatus = "NotRequired"
	DeletionRequired    DeletionStatus = "Required"
	DeletionSucceeded   DeletionStatus = "Succeeded"
	DeletionFailed      DeletionStatus = "Failed"
)

// ServiceInstancePropertiesState contains the properties that an operation requests or that the
// broker has confirmed. Parameter values from secrets are redacted.
type ServiceInstancePropertiesState struct {
	ClusterServicePlanExternalName string `json:"clusterServicePlanExternalName"`
	ClusterServicePlanExternalID   string `json:"clusterServicePlanExternalID"`
	ServicePlanExternalName        string `json:"servicePlanExternalName,omitempty"`
	ServicePlanExternalID          string `json:"servicePlanExternalID,omitempty"`
	// MaintenanceVersion is the version of the software that the plan provisions.
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	// Parameters contains the parameters, with secret values redacted.
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`
	// ParameterChecksum is a SHA-256 checksum of all parameters.
	ParameterChecksum string `json:"parameterChecksum,omitempty"`
	// UserInfo is the user who originated the request.
	UserInfo *authenticationv1.UserInfo `json:"userInfo,omitempty"`
}
