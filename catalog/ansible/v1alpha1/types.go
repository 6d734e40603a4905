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
	// Image is the reference of the image.
	Image string `json:"image"`
	// Tags are words for the catalog.
	Tags []string `json:"tags"`
	// Bindable reports whether instances can be bound.
	Bindable bool `json:"bindable"`
	// Description is a short description.
	Description string `json:"description"`
	// Metadata is an object in JSON.
	Metadata string `json:"metadata"`
	// Async is required, optional or unsupported.
	Async string `json:"async"`
	// Plans are the plans of the service.
	Plans []Plan `json:"plans"`
}

// Plan is a plan of a bundle.
type Plan struct {
	// ID is the ID of the plan in the catalog.
	ID string `json:"id"`
	// Name is the name of the plan.
	Name string `json:"name"`
	// Description is a short description.
	Description string `json:"description"`
	// Metadata is an object in JSON.
	Metadata string `json:"metadata,omitempty"`
	// Free reports whether the plan is free of charge.
	Free bool `json:"free"`
	// Bindable reports whether instances can be bound.
	Bindable bool `json:"bindable"`
	// UpdatesTo are the names of the plans to which an instance can be updated.
	UpdatesTo []string `json:"updatesTo,omitempty"`
	// Parameters are the parameters of instances, BindParameters the parameters of bindings.
	Parameters     []Parameter `json:"parameters,omitempty"`
	BindParameters []Parameter `json:"bindParameters,omitempty"`
}

// Parameter is a parameter of a plan.
type Parameter struct {
	// Name is the name of the parameter.
	Name string `json:"name"`
	// Title is the name that forms show.
	Title string `json:"title,omitempty"`
	// Type is the type of the value.
	Type string `json:"type,omitempty"`
	// Description is a short description.
	Description string `json:"description,omitempty"`
	// Required reports whether the parameter must have a value.
	Required bool `json:"required"`
	// Updatable reports whether an update can change the value.
	Updatable bool `json:"updatable,omitempty"`
	// Enum are the possible values.
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
	// Bundle is the bundle of the instance.
	Bundle LocalObjectReference `json:"bundle"`
	// Context is where the instance is.
	Context Context `json:"context"`
	// DashboardURL is the address of a user interface, if there is one.
	DashboardURL string `json:"dashboardUrl,omitempty"`
}

// LocalObjectReference names an object of the same namespace.
type LocalObjectReference struct {
	// Name is the name of the object.
	Name string `json:"name"`
}

// Context is the platform and the project of an instance.
type Context struct {
	// Platform is the platform that requested the instance.
	Platform string `json:"platform"`
	// Namespace is the project.
	Namespace string `json:"namespace"`
}

// BundleInstanceStatus is the state of an instance.
type BundleInstanceStatus struct {
	// Bindings are the bindings of the instance.
	Bindings []LocalObjectReference `json:"bindings"`
	// State is the state of the last operation.
	State State `json:"state"`
	// LastDescription describes the progress of the last operation, or its failure.
	LastDescription string `json:"lastDescription"`
	// Jobs are the last operation of the instance, by its name.
	Jobs map[string]Job `json:"jobs,omitempty"`
}

// Job is an operation, in which the bundle runs in a pod.
type Job struct {
	// PodName is the name of the pod and of its namespace.
	PodName string `json:"podName"`
	// State is the state of the operation.
	State State `json:"state"`
	// Description describes the progress, or the failure.
	Description string `json:"description,omitempty"`
	// Method is the action of the bundle.
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
	// BundleInstance is the instance that is bound.
	BundleInstance LocalObjectReference `json:"bundleInstance"`
}

// BundleBindingStatus is the state of a binding.
type BundleBindingStatus struct {
	// State is succeeded or failed.
	State State `json:"state"`
	// LastDescription describes a failure.
	LastDescription string `json:"lastDescription"`
}
