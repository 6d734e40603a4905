// Package security serves the API group security.openshift.io and checks pods against security
// context constraints. It also allocates each namespace's ranges of user IDs, group IDs and SELinux
// labels, which the constraints use.
//
// Package scc evaluates constraints. Source: OpenShift Container Platform 3.9 Architecture, 4.2.5,
// and 3.11 Cluster Administration, chapter 15.
package security

import (
	"io"

	securityv1 "github.com/openshift/api/security/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/apiserver"
)

// PluginName is the name of the admission plugin in the server configuration.
const PluginName = "SecurityContextConstraint"

// Feature returns the security.openshift.io API group and its admission plugins so that they can be
// registered with the API server.
func Feature() apiserver.Feature {
	evaluator := &evaluator{}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: securityv1.GroupVersion,
			Install:      securityv1.Install,
			Legacy:       securityv1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				constraints(), rangeAllocations(),
				apiserver.Virtual{Plural: "podsecuritypolicysubjectreviews", New: newSubjectReviews(evaluator)},
				apiserver.Virtual{Plural: "podsecuritypolicyselfsubjectreviews", New: newSelfReviews(evaluator)},
				apiserver.Virtual{Plural: "podsecuritypolicyreviews", New: newAccountReviews(evaluator)},
			},
		}},
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			evaluator.use(deps)
			return apiserver.Hooks{}, nil
		},
		Admission: []apiserver.Admission{
			{Name: PluginName, New: func(io.Reader) (admission.Interface, error) { return newPodPlugin(evaluator), nil }},
			{Name: ExecPluginName, New: func(io.Reader) (admission.Interface, error) { return newExecPlugin(evaluator), nil }},
		},
	}
}

// constraintsResource returns the group and resource of constraints.
func constraintsResource() schema.GroupResource {
	return securityv1.Resource("securitycontextconstraints")
}
