// Package macvlan reads the annotation that requests a macvlan device for a pod. The CNI plugin
// imports this package, so it depends only on the standard library.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Using an Egress Router to Allow
// External Resources to Recognize Pod Traffic.
package macvlan

import (
	"fmt"
	"strings"
)

// Annotation requests a macvlan device. Its value is "true" for the node's device with the default
// route, or the name of another device on the node.
const Annotation = "pod.network.openshift.io/assign-macvlan"

// Device is the device's name in the pod.
const Device = "macvlan0"

// maxNameLength is the maximum length of a device name on Linux, in bytes.
const maxNameLength = 15

// Request is the macvlan device that an annotation requests.
type Request struct {
	// Wanted is true if the pod requests a device.
	Wanted bool
	// Parent is the name of the node's device. It is empty for the device with the default route.
	Parent string
}

// Parse returns the request in a pod's annotations.
func Parse(annotations map[string]string) (Request, error) {
	value, ok := annotations[Annotation]
	switch {
	case !ok || value == "false":
		return Request{}, nil
	case value == "true":
		return Request{Wanted: true}, nil
	case value == "" || value == "." || value == ".." || len(value) > maxNameLength || strings.ContainsAny(value, "/: \t\n\v\f\r\x00"):
		return Request{}, fmt.Errorf(`annotation %s is %q, must be "true", "false" or the name of a network interface of the node`, Annotation, value)
	}
	return Request{Wanted: true, Parent: value}, nil
}
