// Package macvlan reads the annotation that requests a macvlan device for a pod. The CNI plugin
// imports it, so it depends on the standard library only.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Using an Egress Router to Allow
// External Resources to Recognize Pod Traffic.
package macvlan

import (
	"fmt"
	"strings"
)

// Annotation is the annotation. Its value is "true", for the node's device with the default route,
// or the name of another device of the node.
const Annotation = "pod.network.openshift.io/assign-macvlan"

// Device is the name of the device in the pod.
const Device = "macvlan0"

// maxNameLength is the maximum length of the name of a device on Linux.
const maxNameLength = 15

// Request is the macvlan device that an annotation requests.
type Request struct {
	// Wanted is true if the pod gets a device.
	Wanted bool
	// Parent is the name of the node's device. It is empty for the device with the default route.
	Parent string
}

// Parse returns the request of a pod with these annotations.
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
