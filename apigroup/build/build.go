// Package build serves the API group build.openshift.io: build configurations and builds.
// defaults.go contains defaults such as the number of builds to keep. Package buildcontroller runs
// builds and deletes old builds.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on builds; the wire types are
// defined in github.com/openshift/api/build/v1.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// Rules provides Kubernetes' validation for the types that a build embeds.
type Rules interface {
	// Env and Resources return validation errors.
	Env([]corev1.EnvVar, *field.Path) field.ErrorList
	Resources(*corev1.ResourceRequirements, *field.Path) field.ErrorList
}

// Feature returns the build.openshift.io API group so that it can be registered with the API
// server. Unless jenkins is nil, each project with pipelines has its own Jenkins.
func Feature(rules Rules, jenkins *Jenkins) apiserver.Feature {
	shared := &buildStore{}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: buildv1.GroupVersion,
			Install:      buildv1.Install,
			Legacy:       buildv1.DeprecatedInstallWithoutGroup,
			Prepare: func(scheme *runtime.Scheme) error {
				return errors.Join(apiserver.RegisterQuery[*buildv1.BuildLogOptions](scheme),
					apiserver.RegisterQuery[*buildv1.BinaryBuildRequestOptions](scheme))
			},
			Resources: []apiserver.Served{buildConfigs(rules), builds(rules)},
		}},
		Admission: append([]apiserver.Admission{{Name: StrategyPlugin, New: func(io.Reader) (admission.Interface, error) { return newStrategyAdmission(shared), nil }}},
			jenkins.admission(shared)...),
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			shared.deps = deps
			return apiserver.Hooks{Conceal: []func(string) string{concealSecret}, LongRunning: func(info *request.RequestInfo) bool {
				return info.APIGroup == buildv1.GroupName && info.Resource == "buildconfigs" && info.Subresource == binarySubresource
			}}, nil
		},
	}
}

// buildConfigs serves the buildconfigs resource. As in OpenShift 3, it has no status subresource,
// so an update can also change the status. However, an update cannot decrease the last version.
func buildConfigs(rules Rules) apiserver.Served {
	type config = *buildv1.BuildConfig
	check := validator{rules}
	return apiserver.Resource[config]{
		Plural: "buildconfigs", ShortNames: []string{"bc"}, Categories: []string{"all"}, Namespaced: true,
		Default: setConfigDefaults, Prepare: keepLastVersion, Validate: check.config,
		Subresources: func(deps apiserver.Deps, _ *registry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{
				"instantiate":     &instantiateREST{newRequestAction(deps)},
				binarySubresource: &instantiateBinary{buildStore{deps}},
				"webhooks":        &webHooks{buildStore{deps}},
			}, nil
		},
		Columns: []apiserver.Column[config]{
			{Name: "Type", Description: "Build strategy", Value: func(bc config) any { return strategyText(&bc.Spec.Strategy) }},
			{Name: "From", Description: "Source of the build", Value: func(bc config) any { return sourceText(&bc.Spec.CommonSpec) }},
			{Name: "Latest", Description: "Number of the last build", Value: func(bc config) any { return bc.Status.LastVersion }},
		},
	}
}

func builds(rules Rules) apiserver.Served {
	type build = *buildv1.Build
	check := validator{rules}
	return apiserver.Resource[build]{
		Plural: "builds", Categories: []string{"all"}, Namespaced: true,
		Default: setBuildDefaults, Prepare: prepareBuild, Validate: check.build,
		Subresources: func(deps apiserver.Deps, _ *registry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{
				"clone": &clone{newRequestAction(deps)}, "details": &details{buildStore{deps}}, "log": &logs{buildStore{deps}},
			}, nil
		},
		Fields: map[string]func(build) string{
			"status":  func(b build) string { return string(b.Status.Phase) },
			"podName": func(b build) string { return instantiate.PodName(b.Name) },
		},
		Columns: []apiserver.Column[build]{
			{Name: "Type", Description: "Build strategy", Value: func(b build) any { return strategyText(&b.Spec.Strategy) }},
			{Name: "From", Description: "Source of the build", Value: func(b build) any { return sourceText(&b.Spec.CommonSpec) }},
			{Name: "Status", Description: "Phase and reason", Value: statusText},
			{Name: "Started", Description: "Time since the start", Value: func(b build) any {
				if b.Status.StartTimestamp == nil {
					return ""
				}
				return apiserver.Since(*b.Status.StartTimestamp) + " ago"
			}},
			{Name: "Duration", Description: "Duration of the build", Value: durationText},
		},
	}
}

func keepLastVersion(_ context.Context, config, old *buildv1.BuildConfig) {
	if old != nil && config.Status.LastVersion < old.Status.LastVersion {
		config.Status.LastVersion = old.Status.LastVersion
	}
}

// prepareBuild sets the phase of a new build and removes answers to inputs, because answers can
// only be added later.
func prepareBuild(ctx context.Context, build, old *buildv1.Build) {
	if old != nil {
		recordAnswers(ctx, build, old)
		return
	}
	instantiate.RemoveAnswers(build)
	if build.Status.Phase == "" {
		build.Status.Phase = buildv1.BuildPhaseNew
	}
}

func strategyText(strategy *buildv1.BuildStrategy) string {
	switch {
	case strategy.DockerStrategy != nil:
		return "Docker"
	case strategy.SourceStrategy != nil:
		return "Source"
	case strategy.CustomStrategy != nil:
		return "Custom"
	case strategy.JenkinsPipelineStrategy != nil:
		return "JenkinsPipeline"
	}
	return string(strategy.Type)
}

// sourceText returns a build's source in OpenShift 3's notation, such as "Git@master" or
// "Dockerfile,Binary".
func sourceText(spec *buildv1.CommonSpec) string {
	source := &spec.Source
	switch {
	case source.Binary != nil && source.Dockerfile != nil:
		return "Dockerfile,Binary"
	case source.Binary != nil:
		return "Binary" + commitText(spec.Revision, "")
	case source.Git != nil && source.Dockerfile != nil:
		return "Dockerfile,Git" + commitText(spec.Revision, source.Git.Ref)
	case source.Git != nil:
		return "Git" + commitText(spec.Revision, source.Git.Ref)
	case source.Dockerfile != nil:
		return "Dockerfile"
	case len(source.Images) > 0:
		return "Image"
	}
	return ""
}

func commitText(revision *buildv1.SourceRevision, ref string) string {
	if revision != nil && revision.Git != nil && revision.Git.Commit != "" {
		return "@" + revision.Git.Commit[:min(7, len(revision.Git.Commit))]
	}
	if ref != "" {
		return "@" + ref
	}
	return ""
}

func statusText(build *buildv1.Build) any {
	if build.Status.Reason == "" {
		return string(build.Status.Phase)
	}
	return fmt.Sprintf("%s (%s)", build.Status.Phase, build.Status.Reason)
}

func durationText(build *buildv1.Build) any {
	start, end := build.Status.StartTimestamp, build.Status.CompletionTimestamp
	switch {
	case start == nil:
		return ""
	case end == nil:
		return duration.HumanDuration(time.Since(start.Time))
	}
	return duration.HumanDuration(end.Sub(start.Time))
}
