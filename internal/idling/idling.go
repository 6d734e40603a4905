// Package idling defines the annotations of idle services. They are OpenShift 3's annotations: the
// client writes them, the node's proxy reads them, and a controller removes them.
package idling

import (
	"encoding/json"
	"fmt"
	"time"
)

// Annotations of idle services and of the resources that are scaled down with them.
const (
	// IdledAt is set on idle services, their endpoints and their scaled resources. It contains the
	// time when the service was idled, in RFC 3339 format.
	IdledAt = "idling.alpha.openshift.io/idled-at"
	// Targets is set on idle services and their endpoints. It contains the resources to scale up,
	// as a JSON list of Targets.
	Targets = "idling.alpha.openshift.io/unidle-targets"
	// PreviousScale is set on scaled resources. It contains the number of pods before the resource was
	// idled.
	PreviousScale = "idling.alpha.openshift.io/previous-scale"
)

// routerIdledAt is another name for IdledAt. OpenShift 3's router accepts both names.
const routerIdledAt = "idling.openshift.io/idled-at"

// NeedPods is the reason for the event that is recorded when a client connects to an idle service.
const NeedPods = "NeedPods"

// Target is a resource to scale up when a client connects to the service.
type Target struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Group    string `json:"group,omitempty"`
	Replicas int32  `json:"replicas"`
}

// Read decodes the targets in a service's annotations.
func Read(annotations map[string]string) (targets []Target, err error) {
	if err := json.Unmarshal([]byte(annotations[Targets]), &targets); err != nil {
		return nil, fmt.Errorf("parse annotation %s: %w", Targets, err)
	}
	return targets, nil
}

// Since returns the time when the object with the given annotations was idled. ok is false if the
// object is not idle.
func Since(annotations map[string]string) (since time.Time, ok bool) {
	since, err := time.Parse(time.RFC3339, annotations[IdledAt])
	return since, err == nil
}

// Marked reports whether annotations contain an idling time, under either name. If a service's
// annotations contain one, a router sends requests for the service to its cluster IP.
func Marked(annotations map[string]string) bool {
	return annotations[IdledAt] != "" || annotations[routerIdledAt] != ""
}
