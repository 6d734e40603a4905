// Package networkplugin defines the names of OpenShift 3's network plugins, which are the modes of
// the pod network, and the annotations of NetNamespaces: one with which administrators change the
// network of a project, and one with the project's UID.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Managing Networking; names and
// values are those of OpenShift 3.11's API.
package networkplugin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Names of the plugins.
const (
	// Subnet connects all pods, without any isolation.
	Subnet = "redhat/openshift-ovs-subnet"
	// Multitenant isolates projects with different network IDs.
	Multitenant = "redhat/openshift-ovs-multitenant"
	// NetworkPolicy isolates pods by network policies.
	NetworkPolicy = "redhat/openshift-ovs-networkpolicy"
	// CNI leaves the network of pods to a CNI plugin that the administrator installs on each host.
	CNI = "cni"
)

// Default is the plugin of a configuration without one.
const Default = NetworkPolicy

// Names returns the names of all plugins.
func Names() []string { return []string{Subnet, Multitenant, NetworkPolicy, CNI} }

// IDs of networks.
const (
	// GlobalID is the ID of the network that can reach all other networks.
	GlobalID uint32 = 0
	// FirstID is the first ID for projects. Those between GlobalID and FirstID are reserved.
	FirstID uint32 = 10
	// LastID is the last ID, which has 24 bits.
	LastID uint32 = 1<<24 - 1
)

// ProjectUIDAnnotation of a NetNamespace contains the UID of its project. A project of the same
// name that is created later has another UID.
const ProjectUIDAnnotation = "slipway.openshift.io/project-uid"

// BelongsTo reports whether a NetNamespace with these annotations can belong to the project with a
// UID. Without the annotation, it can belong to any project of its name.
func BelongsTo(annotations map[string]string, uid types.UID) bool {
	recorded := annotations[ProjectUIDAnnotation]
	return recorded == "" || recorded == string(uid)
}

// Action is a change of a project's network.
type Action string

// Actions.
const (
	Join    Action = "join"    // share the network of another project
	Isolate Action = "isolate" // use a separate network
	Global  Action = "global"  // reach all networks
)

// Change is the value of the annotation ChangePodNetworkAnnotation.
type Change struct {
	Action Action
	// Project is the project to join.
	Project string
}

// String returns the value of the annotation.
func (c Change) String() string {
	if c.Action == Join {
		return string(c.Action) + ":" + c.Project
	}
	return string(c.Action)
}

// ParseChange reads the value of the annotation.
func ParseChange(text string) (Change, error) {
	action, project, _ := strings.Cut(text, ":")
	change := Change{Action(action), project}
	switch {
	case change.Action == Join && project != "" && !strings.Contains(project, ":"):
		return change, nil
	case (change.Action == Isolate || change.Action == Global) && project == "":
		return change, nil
	}
	return Change{}, fmt.Errorf("parse change of network %q: must be %s:PROJECT, %s or %s", text, Join, Isolate, Global)
}
