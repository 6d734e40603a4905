// Package policy defines OpenShift 3's scheduler Policy, which is stored in the scheduler.json
// file. Predicates exclude nodes, and priorities score the remaining nodes (OpenShift 3.11
// administration guide, section 16.2.4).
package policy

import (
	"encoding/json"
	"fmt"
)

// Policy replaces the scheduler's default predicates and priorities.
type Policy struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// Version is an alternative spelling of APIVersion, which the guide's samples use.
	Version string `json:"version"`
	// Predicates exclude nodes. Null means the default predicates.
	Predicates []Predicate `json:"predicates"`
	// Priorities score nodes. Null means the default priorities.
	Priorities []Priority `json:"priorities"`
	// Extenders are web services that the scheduler calls.
	Extenders []Extender `json:"extenders"`
	// HardPodAffinitySymmetricWeight is the weight, from 1 to 100, of the preference for nodes with
	// pods that require affinity to the new pod. 0 means the default weight.
	HardPodAffinitySymmetricWeight int32 `json:"hardPodAffinitySymmetricWeight"`
	// AlwaysCheckAllPredicates indicates whether the scheduler reports all predicates that exclude a
	// node, instead of only the first.
	AlwaysCheckAllPredicates bool `json:"alwaysCheckAllPredicates"`
}

// Predicate is a rule that excludes nodes. If Argument is set, Name can be any name.
type Predicate struct {
	Name     string             `json:"name"`
	Argument *PredicateArgument `json:"argument"`
}

// PredicateArgument configures a predicate. Exactly one field is set.
type PredicateArgument struct {
	ServiceAffinity *ServiceAffinity `json:"serviceAffinity"`
	LabelsPresence  *LabelsPresence  `json:"labelsPresence"`
}

// ServiceAffinity keeps a service's pods on nodes that have the same values for Labels.
type ServiceAffinity struct {
	Labels []string `json:"labels"`
}

// LabelsPresence requires that nodes have all of Labels or, if Presence is false, none of them.
type LabelsPresence struct {
	Labels   []string `json:"labels"`
	Presence bool     `json:"presence"`
}

// Priority is a rule that scores nodes. If Argument is set, Name can be any name.
type Priority struct {
	Name     string            `json:"name"`
	Weight   int64             `json:"weight"`
	Argument *PriorityArgument `json:"argument"`
}

// PriorityArgument configures a priority. Exactly one field is set.
type PriorityArgument struct {
	ServiceAntiAffinity *ServiceAntiAffinity `json:"serviceAntiAffinity"`
	LabelPreference     *LabelPreference     `json:"labelPreference"`
}

// ServiceAntiAffinity spreads a service's pods over the values of a label.
type ServiceAntiAffinity struct {
	Label Label `json:"label"`
}

// LabelPreference prefers nodes that have a label or, if Presence is false, nodes that do not have
// it.
type LabelPreference struct {
	Label    string `json:"label"`
	Presence bool   `json:"presence"`
}

// Label is the key of a node label. In JSON, it can also be a list with one label, because the
// guide shows both forms.
type Label string

// UnmarshalJSON reads a string, or a list that contains one string.
func (l *Label) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*l = Label(one)
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil || len(list) != 1 {
		return fmt.Errorf("must be one label")
	}
	*l = Label(list[0])
	return nil
}

// Extender is a web service that the scheduler calls. Kubernetes documents the protocol.
type Extender struct {
	URLPrefix      string `json:"urlPrefix"`
	FilterVerb     string `json:"filterVerb"`
	PreemptVerb    string `json:"preemptVerb"`
	PrioritizeVerb string `json:"prioritizeVerb"`
	BindVerb       string `json:"bindVerb"`
	Weight         int64  `json:"weight"`
	EnableHTTPS    bool   `json:"enableHttps"`
	TLSConfig      *TLS   `json:"tlsConfig"`
	// HTTPTimeout is the timeout in nanoseconds. 0 means 5 seconds.
	HTTPTimeout      int64             `json:"httpTimeout"`
	NodeCacheCapable bool              `json:"nodeCacheCapable"`
	ManagedResources []ManagedResource `json:"managedResources"`
	Ignorable        bool              `json:"ignorable"`
}

// TLS configures the connection to an extender.
type TLS struct {
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName"`
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	CAFile     string `json:"caFile"`
}

// ManagedResource is an extended resource that an extender manages.
type ManagedResource struct {
	Name               string `json:"name"`
	IgnoredByScheduler bool   `json:"ignoredByScheduler"`
}
