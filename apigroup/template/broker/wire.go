package broker

// The bodies of the Open Service Broker API, as far as a template has something to say in them.

// service is a template in the catalog; its identity is the template's UID.
type service struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tags        []string          `json:"tags,omitempty"`
	Bindable    bool              `json:"bindable"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Plans       []plan            `json:"plans"`
}

// plan is the one plan of a service; its identity is the service's.
type plan struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Free        bool         `json:"free"`
	Bindable    bool         `json:"bindable"`
	Metadata    planMetadata `json:"metadata"`
	Schemas     planSchemas  `json:"schemas"`
}

// planMetadata tells the web console of OpenShift 3 in which order to ask for parameters.
type planMetadata struct {
	Schemas struct {
		ServiceInstance struct {
			Create struct {
				Form []string `json:"openshift_form_definition"`
			} `json:"create"`
		} `json:"service_instance"`
	} `json:"schemas"`
}

// planSchemas describe the parameters of instances and of bindings.
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

// provisionRequest asks for an instance.
type provisionRequest struct {
	ServiceID string `json:"service_id"`
	PlanID    string `json:"plan_id"`
	Context   struct {
		Platform  string `json:"platform"`
		Namespace string `json:"namespace"`
	} `json:"context"`
	Parameters map[string]string `json:"parameters"`
}

// bindRequest asks for what an instance exposes.
type bindRequest struct {
	ServiceID  string            `json:"service_id"`
	PlanID     string            `json:"plan_id"`
	Parameters map[string]string `json:"parameters"`
}

// What takes time is one of these; the platform asks for it with last_operation.
const (
	provisioning   = "provisioning"
	deprovisioning = "deprovisioning"
)

// begun is the answer to what takes time.
type begun struct {
	Operation string `json:"operation"`
}

// The states of an operation.
const (
	inProgress = "in progress"
	succeeded  = "succeeded"
	failed     = "failed"
)

// operationState says how far an operation is.
type operationState struct {
	State       string `json:"state"`
	Description string `json:"description,omitempty"`
}

// binding holds what an instance exposes.
type binding struct {
	Credentials map[string]string `json:"credentials"`
}

// problem is the body of a refusal.
type problem struct {
	Error       string `json:"error,omitempty"`
	Description string `json:"description"`
}

// nothing is the body of an answer that says all by its code.
type nothing struct{}
