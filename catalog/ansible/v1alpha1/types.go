package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bundle is an Ansible playbook bundle that the broker offers.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BundleSpec `json:"spec"`
}

// BundleList is a list of bundles.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// BundleSpec describes a bundle.
type BundleSpec struct {
	// Runtime is the version of the contract between the broker and the image.
	Runtime int `json:"runtime"`
	// Version is the version of the specification.
	Version string `json:"version"`
	// FQName is the name of the service.
	FQName string `json:"fqName"`
	// Image is the image reference.
	Image string `json:"image"`
	// Tags lists keywords for the catalog.
	Tags []string `json:"tags"`
	// Bindable indicates whether instances can be bound.
	Bindable bool `json:"bindable"`
	// Description is a short description.
	Description string `json:"description"`
	// Metadata is a JSON object.
	Metadata string `json:"metadata"`
	// Async is required, optional or unsupported.
	Async string `json:"async"`
	// Plans lists the service's plans.
	Plans []Plan `json:"plans"`
}

// Plan is a plan of a bundle.
type Plan struct {
	// ID is the plan's ID in the catalog.
	ID string `json:"id"`
	// Name is the name of the plan.
	Name string `json:"name"`
	// Description is a short description.
	Description string `json:"description"`
	// Metadata is a JSON object.
	Metadata string `json:"metadata,omitempty"`
	// Free indicates whether the plan is free of charge.
	Free bool `json:"free"`
	// Bindable indicates whether instances can be bound.
	Bindable bool `json:"bindable"`
	// UpdatesTo lists the names of the plans that an instance can be updated to.
	UpdatesTo []string `json:"updatesTo,omitempty"`
	// Parameters lists the parameters of instances. BindParameters lists the parameters of
	// bindings.
	Parameters     []Parameter `json:"parameters,omitempty"`
	BindParameters []Parameter `json:"bindParameters,omitempty"`
}

// Parameter is a parameter of a plan.
type Parameter struct {
	// Name is the name of the parameter.
	Name string `json:"name"`
	// Title is the name of the parameter in forms.
	Title string `json:"title,omitempty"`
	// Type is the type of the value.
	Type string `json:"type,omitempty"`
	// Description is a short description.
	Description string `json:"description,omitempty"`
	// Required indicates whether the parameter must have a value.
	Required bool `json:"required"`
	// Updatable indicates whether an update can change the value.
	Updatable bool `json:"updatable,omitempty"`
	// Enum lists the allowed values.
	Enum []string `json:"enum,omitempty"`
}

// State is the state of an instance or a binding.
type State string

// States of instances and bindings.
const (
	InProgress State = "in progress"
	Succeeded  State = "succeeded"
	Failed     State = "failed"
)

// BundleInstance is an instance of a bundle. Its parameters can contain secrets and are not shown.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BundleInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleInstanceSpec   `json:"spec"`
	Status BundleInstanceStatus `json:"status"`
}

// BundleInstanceList is a list of instances.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BundleInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleInstance `json:"items"`
}

// BundleInstanceSpec describes an instance.
type BundleInstanceSpec struct {
	// Bundle is the instance's bundle.
	Bundle LocalObjectReference `json:"bundle"`
	// Context is the context in which the instance was created.
	Context Context `json:"context"`
	// DashboardURL is the URL of the instance's dashboard, if it has one.
	DashboardURL string `json:"dashboardUrl,omitempty"`
}

// LocalObjectReference refers to an object in the same namespace.
type LocalObjectReference struct {
	// Name is the name of the object.
	Name string `json:"name"`
}

// Context describes where an instance was requested.
type Context struct {
	// Platform is the platform that requested the instance.
	Platform string `json:"platform"`
	// Namespace is the project for which the instance was requested.
	Namespace string `json:"namespace"`
}

// BundleInstanceStatus is the state of an instance.
type BundleInstanceStatus struct {
	// Bindings lists the instance's bindings.
	Bindings []LocalObjectReference `json:"bindings"`
	// State is the state of the last operation.
	State State `json:"state"`
	// LastDescription describes the progress or the failure of the last operation.
	LastDescription string `json:"lastDescription"`
	// Jobs contains the instance's last operation, keyed by its name.
	Jobs map[string]Job `json:"jobs,omitempty"`
}

// Job is an operation that runs the bundle in a pod.
type Job struct {
	// PodName is the name of the pod and of the pod's namespace.
	PodName string `json:"podName"`
	// State is the state of the operation.
	State State `json:"state"`
	// Description describes the progress or the failure of the operation.
	Description string `json:"description,omitempty"`
	// Method is the action of the bundle that the job runs.
	Method string `json:"method"`
}

// BundleBinding is a binding of an instance.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BundleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleBindingSpec   `json:"spec"`
	Status BundleBindingStatus `json:"status"`
}

// BundleBindingList is a list of bindings.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type BundleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleBinding `json:"items"`
}

// BundleBindingSpec describes a binding.
type BundleBindingSpec struct {
	// BundleInstance is the binding's instance.
	BundleInstance LocalObjectReference `json:"bundleInstance"`
}

// BundleBindingStatus is the state of a binding.
type BundleBindingStatus struct {
	// State is succeeded or failed.
	State State `json:"state"`
	// LastDescription describes the failure of the last operation.
	LastDescription string `json:"lastDescription"`
}
