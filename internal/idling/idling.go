// Package idling defines the annotations of idle services. They are OpenShift 3's: the client
// writes them, the node's proxy reads them, and a controller removes them.
package idling

import (
	"encoding/json"
	"fmt"
	"time"
)

// The annotations.
const (
	// IdledAt is on idle services, their endpoints and their scaled resources: the RFC 3339 time of
	// idling.
	IdledAt = "idling.alpha.openshift.io/idled-at"
	// Targets is on idle services and their endpoints: the resources to scale up, a list of Target
	// as JSON.
	Targets = "idling.alpha.openshift.io/unidle-targets"
	// PreviousScale is on scaled resources: the number of pods before idling.
	PreviousScale = "idling.alpha.openshift.io/previous-scale"
)

// routerIdledAt is another name of IdledAt. OpenShift 3's router accepts both.
const routerIdledAt = "idling.openshift.io/idled-at"

// NeedPods is the reason of the event that is recorded when a client connects to an idle service.
const NeedPods = "NeedPods"

// Target is a resource to scale up when a client connects to the service.
type Target struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Group    string `json:"group,omitempty"`
	Replicas int32  `json:"replicas"`
}

// Read decodes the targets in the annotations of a service.
func Read(annotations map[string]string) (targets []Target, err error) {
	if err := json.Unmarshal([]byte(annotations[Targets]), &targets); err != nil {
		return nil, fmt.Errorf("read annotation %s: %w", Targets, err)
	}
	return targets, nil
}

// Since returns when the object with the annotations was idled. If ok is false, the object is not
// idle.
func Since(annotations map[string]string) (since time.Time, ok bool) {
	since, err := time.Parse(time.RFC3339, annotations[IdledAt])
	return since, err == nil
}

// Marked reports whether annotations contain a time of idling, under either of its names. A router
// sends requests for a service with these annotations to its cluster address.
func Marked(annotations map[string]string) bool {
	return annotations[IdledAt] != "" || annotations[routerIdledAt] != ""
}
