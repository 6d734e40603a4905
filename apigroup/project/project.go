// Package project serves the API group project.openshift.io. Projects are the namespaces that are
// visible to a user. Project requests create projects for users.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.4 Projects and Users, and 3.11 Cluster
// Administration, chapter 6.
package project

import (
	"io"

	projectv1 "github.com/openshift/api/project/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	registry "k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"

	"github.com/slipway-platform/slipway/apiserver"
)

// Feature returns the project.openshift.io API group and its admission plugins so that they can be
// registered with the API server.
func Feature(settings *Settings) apiserver.Feature {
	f := &feature{settings: settings}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: projectv1.GroupVersion,
			Install:      projectv1.Install,
			Legacy:       projectv1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				apiserver.Virtual{Plural: "projects", New: f.newProjects},
				apiserver.Virtual{Plural: "projectrequests", New: f.newRequests},
			},
		}},
		Hooks: f.hooks,
		Admission: []apiserver.Admission{
			{Name: LimitPluginName, New: func(config io.Reader) (admission.Interface, error) { return newLimit(f, config) }, Live: true},
			{Name: NamePluginName, New: func(config io.Reader) (admission.Interface, error) { return newNameCheck(config) }, Live: true},
			{Name: deletionsPluginName, New: func(io.Reader) (admission.Interface, error) { return newDeletions(f), nil }},
			{Name: NodeSelectorPluginName, New: func(io.Reader) (admission.Interface, error) { return newNodeSelector(settings), nil }},
		},
	}
}

// feature holds the state that the group's resources and admission plugins share.
type feature struct {
	settings *Settings
	deps     apiserver.Deps
	observer *observer
}

// hooks creates the index of visible projects. The server becomes ready only when the index is
// complete.
func (f *feature) hooks(deps apiserver.Deps) (apiserver.Hooks, error) {
	f.deps = deps
	var err error
	if f.observer, err = observe(deps.Informers); err != nil {
		return apiserver.Hooks{}, err
	}
	return apiserver.Hooks{
		Requests: []func(*request.RequestInfo){inItself},
		PostStart: map[string]genericserver.PostStartHookFunc{
			"openshift.io-projects": func(ctx genericserver.PostStartHookContext) error { return f.observer.ready(ctx) },
		},
	}, nil
}

// inItself sets the namespace of a request for a single project to the project's name. As a result,
// the roles of the project's members apply, as they do for namespaces.
func inItself(info *request.RequestInfo) {
	if info.APIGroup == projectv1.GroupName && info.Resource == "projects" && info.Name != "" {
		info.Namespace = info.Name
	}
}

func (f *feature) newProjects(deps apiserver.Deps) (registry.Storage, error) {
	return newProjects(f.observer, &visibility{deps.Authorizer}, deps.Kube), nil
}

func (f *feature) newRequests(deps apiserver.Deps) (registry.Storage, error) {
	objects := newWriter(deps)
	return &requests{
		Unstored:       apiserver.Unstored[*projectv1.ProjectRequest]{Singular: "projectrequest"},
		TableConvertor: registry.NewDefaultTableConvertor(projectv1.Resource("projectrequests")),
		settings:       f.settings, authorizer: deps.Authorizer, objects: objects, observer: f.observer,
	}, nil
}
