// Package settings serves the API group settings.k8s.io: pod presets, which add environment
// variables, volumes and mounts to new pods with certain labels.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.1.2 and 6.1.3. Fields, annotations and
// conflicts are the same as in Kubernetes 1.11. Kubernetes removed pod presets in 1.20.
package settings

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
	"github.com/slipway-platform/slipway/apiserver"
)

// PodPreset is the name of the admission plugin in the server configuration.
const PodPreset = "PodPreset"

// Rules provides Kubernetes' defaulting and validation for pod templates.
type Rules interface {
	DefaultPodTemplate(*corev1.PodTemplateSpec)
	PodTemplate(*corev1.PodTemplateSpec, *field.Path) field.ErrorList
}

// Feature returns the settings.k8s.io API group and its admission plugin so that they can be
// registered with the API server.
func Feature(rules Rules) apiserver.Feature {
	presets := &presets{}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: v1alpha1.GroupVersion(),
			Install:      v1alpha1.Install,
			Definitions:  v1alpha1.GetOpenAPIDefinitions,
			Resources:    []apiserver.Served{podPresets(rules)},
		}},
		// The plugin is created before the stores exist. It reads the stores only when it serves
		// requests.
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			presets.stores = deps.Stores
			return apiserver.Hooks{}, nil
		},
		Admission: []apiserver.Admission{{
			// The plugin must precede the plugins that check a pod's content, as in Kubernetes
			// 1.11.
			Name: PodPreset, Before: "LimitRanger",
			New: func(io.Reader) (admission.Interface, error) { return newInjection(presets), nil },
		}},
	}
}

func resource() schema.GroupResource {
	return v1alpha1.GroupVersion().WithResource("podpresets").GroupResource()
}
