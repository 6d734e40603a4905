// Package podpreset defines the annotations that list a pod's presets.
//
// Source: Kubernetes 1.11, pod presets.
package podpreset

import "strings"

// Domain is the annotations' domain.
const Domain = "podpreset.admission.kubernetes.io"

const prefix = Domain + "/podpreset-"

// Annotation returns the name of a preset's annotation. If the preset was applied to a pod, the pod
// has this annotation. Its value is the preset's resource version.
func Annotation(preset string) string { return prefix + preset }

// Applied reports whether a pod with the given annotations contains settings from a preset. A
// member of the pod's project wrote these settings, and might not be the pod's author.
func Applied(annotations map[string]string) bool {
	for name := range annotations {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
