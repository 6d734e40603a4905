// Package apps serves the API group apps.openshift.io, which contains DeploymentConfigs. Like a
// ReplicationController, a deployment configuration describes an application. It also defines how
// and when the application is deployed.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on deployments; the wire type is
// github.com/openshift/api/apps/v1.DeploymentConfig.
package apps

import (
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// Rules provides Kubernetes' defaulting and validation for the types that a deployment
// configuration embeds.
type Rules interface {
	// DefaultPodTemplate sets the defaults of a pod template.
	DefaultPodTemplate(*corev1.PodTemplateSpec)
	// PodTemplate, Env and Resources validate a pod template, environment variables and resource
	// requirements.
	PodTemplate(*corev1.PodTemplateSpec, *field.Path) field.ErrorList
	Env([]corev1.EnvVar, *field.Path) field.ErrorList
	Resources(*corev1.ResourceRequirements, *field.Path) field.ErrorList
}

// Feature returns the apps.openshift.io API group so that it can be registered with the API server.
func Feature(rules Rules) apiserver.Feature {
	return apiserver.Feature{Groups: []apiserver.Group{{
		GroupVersion: appsv1.GroupVersion,
		Install:      appsv1.Install,
		Legacy:       appsv1.DeprecatedInstallWithoutGroup,
		Prepare:      prepare,
		Resources:    []apiserver.Served{deploymentConfigs(rules), apiserver.Virtual{Plural: "deploymentconfigrollbacks", New: newRollbacks}},
	}}}
}

func deploymentConfigs(rules Rules) apiserver.Served {
	type config = *appsv1.DeploymentConfig
	check := validator{rules}
	return apiserver.Resource[config]{
		Plural: "deploymentconfigs", ShortNames: []string{"dc"}, Categories: []string{"all"}, Namespaced: true, Status: true,
		Default: func(dc config) {
			setDefaults(dc)
			if dc.Spec.Template != nil {
				rules.DefaultPodTemplate(dc.Spec.Template)
			}
		},
		Validate: check.config, ValidateStatus: validateStatus,
		Subresources: subresources,
		Columns: []apiserver.Column[config]{
			{Name: "Revision", Description: "Number of the latest deployment", Value: func(dc config) any { return dc.Status.LatestVersion }},
			{Name: "Desired", Description: "Desired number of pods", Value: func(dc config) any { return int64(dc.Spec.Replicas) }},
			{Name: "Current", Description: "Number of pods", Value: func(dc config) any { return int64(dc.Status.Replicas) }},
			{Name: "Triggered By", Description: "What starts a deployment", Value: triggers},
		},
	}
}

func subresources(deps apiserver.Deps, store *registry.Store) (map[string]rest.Storage, error) {
	return map[string]rest.Storage{
		"scale":       &scale{store},
		"instantiate": &instantiate{apiserver.Action[*appsv1.DeploymentRequest]{Kind: appsv1.GroupVersion.WithKind("DeploymentRequest")}, deps},
		"rollback":    newRollback(deps),
		"log":         &logs{deps, store},
	}, nil
}

// triggers formats the triggers for the table, for example "config,image(ruby:latest)".
func triggers(dc *appsv1.DeploymentConfig) any {
	var names []string
	for _, trigger := range dc.Spec.Triggers {
		switch {
		case trigger.Type == appsv1.DeploymentTriggerOnConfigChange:
			names = append(names, "config")
		case trigger.Type == appsv1.DeploymentTriggerOnImageChange && trigger.ImageChangeParams != nil:
			names = append(names, "image("+trigger.ImageChangeParams.From.Name+")")
		default:
			names = append(names, string(trigger.Type))
		}
	}
	return strings.Join(names, ",")
}
