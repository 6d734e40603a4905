// Package osb implements a client for the Open Service Broker API, version 2.17. Brokers that
// implement older 2.x versions also work, because later versions only add optional fields.
//
// Brokers are not trusted: responses have a maximum size, requests have a timeout, and redirects
// are not followed.
//
// Source: Open Service Broker API, version 2.17, https://www.openservicebrokerapi.org.
package osb

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Version is the API version that the client sends.
const Version = "2.17"

// Request headers.
const (
	versionHeader   = "X-Broker-API-Version"
	identityHeader  = "X-Broker-API-Originating-Identity"
	requestIDHeader = "X-Broker-API-Request-Identity"
)

// Catalog lists a broker's services.
type Catalog struct {
	Services []Service `json:"services"`
}

// Service is a service that a broker offers.
type Service struct {
	ID                   string          `json:"id"`
	Name                 string          `json:"name"`
	Description          string          `json:"description"`
	Tags                 []string        `json:"tags"`
	Requires             []string        `json:"requires"`
	Bindable             bool            `json:"bindable"`
	BindingsRetrievable  bool            `json:"bindings_retrievable"`
	InstancesRetrievable bool            `json:"instances_retrievable"`
	PlanUpdateable       bool            `json:"plan_updateable"` // the API's spelling
	Metadata             json.RawMessage `json:"metadata"`
	Plans                []Plan          `json:"plans"`
}

// Plan is a plan of a service.
type Plan struct {
	ID                     string          `json:"id"`
	Name                   string          `json:"name"`
	Description            string          `json:"description"`
	Metadata               json.RawMessage `json:"metadata"`
	Free                   *bool           `json:"free"` // the default is true
	Bindable               *bool           `json:"bindable"`
	PlanUpdateable         *bool           `json:"plan_updateable"` // overrides the service's
	Schemas                Schemas         `json:"schemas"`
	MaximumPollingDuration int64           `json:"maximum_polling_duration"` // in seconds
	MaintenanceInfo        *Maintenance    `json:"maintenance_info"`
}

// Schemas contains JSON schemas for parameters.
type Schemas struct {
	ServiceInstance struct {
		Create Schema `json:"create"`
		Update Schema `json:"update"`
	} `json:"service_instance"`
	ServiceBinding struct {
		Create Schema `json:"create"`
	} `json:"service_binding"`
}

// Schema contains the JSON schema for a request's parameters.
type Schema struct {
	Parameters json.RawMessage `json:"parameters"`
}

// Maintenance contains the version of the software that a plan provisions.
type Maintenance struct {
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

// MaintenanceOf returns the maintenance info for a request, or nil if version is empty.
func MaintenanceOf(version string) *Maintenance {
	if version == "" {
		return nil
	}
	return &Maintenance{Version: version}
}

// Provision is a request for a new instance.
type Provision struct {
	ServiceID        string         `json:"service_id"`
	PlanID           string         `json:"plan_id"`
	Context          map[string]any `json:"context,omitempty"`
	OrganizationGUID string         `json:"organization_guid"` // required until version 2.12
	SpaceGUID        string         `json:"space_guid"`
	Parameters       map[string]any `json:"parameters,omitempty"`
	MaintenanceInfo  *Maintenance   `json:"maintenance_info,omitempty"`
}

// Update is a request to change an instance.
type Update struct {
	ServiceID  string         `json:"service_id"`
	PlanID     string         `json:"plan_id,omitempty"`
	Context    map[string]any `json:"context,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	// MaintenanceInfo is set only to change the version.
	MaintenanceInfo *Maintenance `json:"maintenance_info,omitempty"`
	PreviousValues  struct {
		PlanID          string       `json:"plan_id,omitempty"`
		MaintenanceInfo *Maintenance `json:"maintenance_info,omitempty"`
	} `json:"previous_values"`
}

// Bind is a request for a new binding.
type Bind struct {
	ServiceID  string         `json:"service_id"`
	PlanID     string         `json:"plan_id"`
	Context    map[string]any `json:"context,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	AppGUID    string         `json:"app_guid,omitempty"`
	Resource   struct {
		AppGUID string `json:"app_guid,omitempty"`
	} `json:"bind_resource"`
}

// Result is the response to a request that changes an instance or a binding.
type Result struct {
	// Async means that the broker continues the operation asynchronously and that the operation
	// must be polled.
	Async bool `json:"-"`
	// Operation is the operation ID to use in polls. It is empty if the broker returns no ID.
	Operation    string `json:"operation"`
	DashboardURL string `json:"dashboard_url"`
	// Credentials contains the credentials of a binding.
	Credentials map[string]any `json:"credentials"`
}

// State is the state of an operation.
type State struct {
	State       string `json:"state"`
	Description string `json:"description"`
	// RetryAfter is the minimum delay before the next poll, or 0.
	RetryAfter time.Duration `json:"-"`
}

// Operation states.
const (
	InProgress = "in progress"
	Succeeded  = "succeeded"
	Failed     = "failed"
)

// Error is an error response from a broker.
type Error struct {
	StatusCode int
	// Code is the error code, such as ConcurrencyError, if the broker returns one.
	Code        string
	Description string
	// RetryAfter is the minimum delay before the next attempt, or 0.
	RetryAfter time.Duration
}

// Error codes.
const (
	AsyncRequired            = "AsyncRequired"
	ConcurrencyError         = "ConcurrencyError"
	MaintenanceInfoConflict  = "MaintenanceInfoConflict"
	unexpectedSuccessMessage = "the body of the response does not match its status"
)

// Error describes the response.
func (e *Error) Error() string {
	text := fmt.Sprintf("Status: %d; ErrorMessage: %s; Description: %s", e.StatusCode, orNone(e.Code), orNone(e.Description))
	return text
}

func orNone(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

// Gone reports whether the response means that the broker does not have the instance or binding.
func (e *Error) Gone() bool { return e.StatusCode == http.StatusGone }

// Ambiguous reports whether the broker might have created something that must be deleted. This is
// the case after a successful response with an invalid body and after a server error.
func (e *Error) Ambiguous() bool {
	return e.StatusCode > http.StatusOK && e.StatusCode < 300 || e.StatusCode >= 500
}
