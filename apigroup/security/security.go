// Package security serves the API group security.openshift.io, checks pods against security context constraints when they
// are made, and allocates the ranges of users, groups and SELinux labels that the constraints take from namespaces.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.2.5, and 3.11 Cluster Administration, chapter 15. What a
// constraint says of a pod is decided in the package scc.
package security

import (
	"io"

	securityv1 "github.com/openshift/api/security/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// PluginName is the admission plugin as the configuration calls it.
const PluginName = "SecurityContextConstraint"

// Feature is the group with its admission plugin.
func Feature() apiserver.Feature {
	judge := &judge{}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: securityv1.GroupVersion,
			Install:      securityv1.Install,
			Legacy:       securityv1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				constraints(), rangeAllocations(),
				apiserver.Virtual{Plural: "podsecuritypolicysubjectreviews", New: newSubjectReviews(judge)},
				apiserver.Virtual{Plural: "podsecuritypolicyselfsubjectreviews", New: newSelfReviews(judge)},
				apiserver.Virtual{Plural: "podsecuritypolicyreviews", New: newAccountReviews(judge)},
			},
		}},
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			judge.use(deps)
			return apiserver.Hooks{}, nil
		},
		Admission: []apiserver.Admission{
			{Name: PluginName, New: func(io.Reader) (admission.Interface, error) { return newCheck(judge), nil }},
			{Name: ExecPluginName, New: func(io.Reader) (admission.Interface, error) { return newExecCheck(judge), nil }},
		},
	}
}

// constraintsResource is where the constraints are stored.
func constraintsResource() schema.GroupResource {
	return securityv1.Resource("securitycontextconstraints")
}
