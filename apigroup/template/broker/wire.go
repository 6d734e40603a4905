package broker

// Request and response bodies of the Open Service Broker API that are specific to templates.

// service is a template in the catalog. Its ID is the template's UID.
type service struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tags        []string          `json:"tags,omitempty"`
	Bindable    bool              `json:"bindable"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Plans       []plan            `json:"plans"`
}

// plan is a service's only plan. Its ID is the same as the service's ID.
type plan struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Free        bool         `json:"free"`
	Bindable    bool         `json:"bindable"`
	Metadata    planMetadata `json:"metadata"`
	Schemas     planSchemas  `json:"schemas"`
}

// planMetadata contains the parameter order in the format that OpenShift 3's web console expects.
type planMetadata struct {
	Schemas struct {
		ServiceInstance struct {
			Create struct {
				Form []string `json:"openshift_form_definition"`
			} `json:"create"`
		} `json:"service_instance"`
	} `json:"schemas"`
}

// planSchemas describes the parameters of instances and bindings.
type planSchemas struct {
	ServiceInstance action `json:"service_instance"`
	ServiceBinding  action `json:"service_binding"`
}

type action struct {
	Create struct {
		Parameters jsonSchema `json:"parameters"`
	} `json:"create"`
}

// jsonSchema is a JSON schema, draft 4.
type jsonSchema struct {
	Version     string                `json:"$schema,omitempty"`
	Type        string                `json:"type"`
	Title       string                `json:"title,omitempty"`
	Description string                `json:"description,omitempty"`
	Default     string                `json:"default,omitempty"`
	Properties  map[string]jsonSchema `json:"properties,omitempty"`
	Required    []string              `json:"required,omitempty"`
}

// provisionRequest is the body of a request for an instance.
type provisionRequest struct {
	ServiceID string `json:"service_id"`
	PlanID    string `json:"plan_id"`
	Context   struct {
		Platform  string `json:"platform"`
		Namespace string `json:"namespace"`
	} `json:"context"`
	Parameters map[string]string `json:"parameters"`
}

// bindRequest is the body of a request for a binding.
type bindRequest struct {
	ServiceID  string            `json:"service_id"`
	PlanID     string            `json:"plan_id"`
	Parameters map[string]string `json:"parameters"`
}

// Asynchronous operations. The platform polls their state at last_operation.
const (
	provisioning   = "provisioning"
	deprovisioning = "deprovisioning"
)

// operation is the response to a request that starts an asynchronous operation.
type operation struct {
	Operation string `json:"operation"`
}

// States of an operation.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

// operationState is the progress of an operation.
type operationState struct {
	State       string `json:"state"`
	Description string `json:"description,omitempty"`
}

// binding contains the values that an instance exposes.
type binding struct {
	Credentials map[string]string `json:"credentials"`
}
