// Package networkplugin defines the names of OpenShift 3's network plugins, which are the modes of
// the pod network. It also defines two NetNamespace annotations. With the first annotation,
// administrators change a project's network. The second annotation contains the project's UID.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Managing Networking. Names and
// values match OpenShift 3.11's API.
package networkplugin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// VXLANPort is the default UDP port for VXLAN, which is used if the ClusterNetwork specifies none.
const VXLANPort = 4789

// Names of the plugins.
const (
	// Subnet connects all pods, without any isolation.
	Subnet = "redhat/openshift-ovs-subnet"
	// Multitenant isolates projects from each other if their network IDs differ.
	Multitenant = "redhat/openshift-ovs-multitenant"
	// NetworkPolicy isolates pods with network policies.
	NetworkPolicy = "redhat/openshift-ovs-networkpolicy"
	// CNI leaves the pod network to a CNI plugin that the administrator installs on each host.
	CNI = "cni"
)

// Default is the plugin that is used if the configuration specifies none.
const Default = NetworkPolicy

// Names returns the names of all plugins.
func Names() []string { return []string{Subnet, Multitenant, NetworkPolicy, CNI} }

// Values and limits of network IDs.
const (
	// GlobalID is the ID of the network that can reach all other networks.
	GlobalID uint32 = 0
	// FirstID is the first ID for projects. The IDs between GlobalID and FirstID are reserved.
	FirstID uint32 = 10
	// LastID is the last ID. IDs have 24 bits.
	LastID uint32 = 1<<24 - 1
)

// ResolveAnnotation is the annotation of an EgressNetworkPolicy that determines which names outside
// the cluster the project's pods can resolve. The only value is ResolveAllowed: the names that the
// policy's rules allow. Without the annotation, pods can resolve all names.
const (
	ResolveAnnotation = "slipway.openshift.io/resolve"
	ResolveAllowed    = "allowed-names"
)

// ProjectUIDAnnotation is the NetNamespace annotation that contains the project's UID. The UID
// distinguishes the project from a later project with the same name.
const ProjectUIDAnnotation = "slipway.openshift.io/project-uid"

// BelongsTo reports whether a NetNamespace with the given annotations can belong to the project
// with the given UID. Without the annotation, the NetNamespace can belong to any project with its
// name.
func BelongsTo(annotations map[string]string, uid types.UID) bool {
	recorded := annotations[ProjectUIDAnnotation]
	return recorded == "" || recorded == string(uid)
}

// Action is a type of change to a project's network.
type Action string

// Changes that administrators can request for a project's network.
const (
	Join    Action = "join"    // share the network of another project
	Isolate Action = "isolate" // use a separate network
	Global  Action = "global"  // reach all networks
)

// Change is the parsed value of ChangePodNetworkAnnotation.
type Change struct {
	Action Action
	// Project is the project to join.
	Project string
}

// String returns the annotation's value.
func (c Change) String() string {
	if c.Action == Join {
		return string(c.Action) + ":" + c.Project
	}
	return string(c.Action)
}

// ParseChange parses the annotation's value.
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
