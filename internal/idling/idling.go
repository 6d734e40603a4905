// Package idling says how it is written down that a service has no pods until somebody needs them: the annotations of OpenShift 3, which the client
// writes, the node's proxy obeys and a controller removes.
package idling

import (
	"encoding/json"
	"fmt"
	"time"
)

// The annotations.
const (
	// IdledAt is on idle services, their endpoints and what was scaled down: when that was, as RFC 3339 writes it.
	IdledAt = "idling.alpha.openshift.io/idled-at"
	// Targets is on idle services and their endpoints: what is scaled up when they are needed, a list of Target as JSON.
	Targets = "idling.alpha.openshift.io/unidle-targets"
	// PreviousScale is on what was scaled down: how many pods it had.
	PreviousScale = "idling.alpha.openshift.io/previous-scale"
)

// NeedPods is the reason of the event of a service that somebody connects to while it is idle.
const NeedPods = "NeedPods"

// Target is what is scaled up when a service is needed.
type Target struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Group    string `json:"group,omitempty"`
	Replicas int32  `json:"replicas"`
}

// Read reads the targets of a service's annotations.
func Read(annotations map[string]string) (targets []Target, err error) {
	if err := json.Unmarshal([]byte(annotations[Targets]), &targets); err != nil {
		return nil, fmt.Errorf("read annotation %s: %w", Targets, err)
	}
	return targets, nil
}

// Since is when what has the annotations became idle; ok is false where it is not.
func Since(annotations map[string]string) (since time.Time, ok bool) {
	since, err := time.Parse(time.RFC3339, annotations[IdledAt])
	return since, err == nil
}
