// Package podpreset names the annotations that list the pod presets of a pod.
//
// Source: Kubernetes 1.11, pod presets.
package podpreset

import "strings"

// Domain is the domain of the annotations.
const Domain = "podpreset.admission.kubernetes.io"

const prefix = Domain + "/podpreset-"

// Annotation returns the name of the annotation of pods that have a preset. Its value is the
// preset's resource version.
func Annotation(preset string) string { return prefix + preset }

// Applied reports whether a pod with these annotations has parts of a preset, which a member of its
// project wrote, and not the pod's author.
func Applied(annotations map[string]string) bool {
	for name := range annotations {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
