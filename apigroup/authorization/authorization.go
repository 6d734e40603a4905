// Package authorization serves the API group authorization.openshift.io. The group contains:
//   - roles and bindings, which represent Kubernetes' RBAC objects in OpenShift's format
//   - role binding restrictions, which limit the subjects that project administrators can bind
//     roles to
//   - access reviews
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.2.4, and 3.11 Cluster Administration,
// chapter 10.
package authorization

import (
	"io"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/slipway-platform/slipway/apiserver"
)

// RestrictionPluginName is the name of the admission plugin that enforces RoleBindingRestrictions.
const RestrictionPluginName = "authorization.openshift.io/RestrictSubjectBindings"

// Feature returns the API group with its admission plugins.
func Feature() apiserver.Feature {
	restrict := &restrict{Handler: admission.NewHandler(admission.Create, admission.Update)}
	return apiserver.Feature{
		Groups: []apiserver.Group{{
			GroupVersion: authorizationv1.GroupVersion,
			Install:      authorizationv1.Install,
			Legacy:       authorizationv1.DeprecatedInstallWithoutGroup,
			Resources: []apiserver.Served{
				apiserver.Virtual{Plural: "roles", New: newRoles},
				apiserver.Virtual{Plural: "rolebindings", New: newRoleBindings},
				apiserver.Virtual{Plural: "clusterroles", New: newClusterRoles},
				apiserver.Virtual{Plural: "clusterrolebindings", New: newClusterRoleBindings},
				restrictions(),
				apiserver.Virtual{Plural: "subjectaccessreviews", New: newSubjectAccess},
				apiserver.Virtual{Plural: "localsubjectaccessreviews", New: newLocalSubjectAccess},
				apiserver.Virtual{Plural: "resourceaccessreviews", New: newResourceAccess},
				apiserver.Virtual{Plural: "localresourceaccessreviews", New: newLocalResourceAccess},
				apiserver.Virtual{Plural: "subjectrulesreviews", New: newSubjectRules},
				apiserver.Virtual{Plural: "selfsubjectrulesreviews", New: newSelfRules},
			},
		}},
		Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
			restrict.stores = deps.Stores
			return apiserver.Hooks{Authorizers: []union.NamedAuthorizer{{
				AuthorizerName: "own-reviews", Authorizer: authorizer.AuthorizerFunc(personal{deps.Authorizer}.authorize),
			}}}, nil
		},
		Admission: []apiserver.Admission{
			{Name: RestrictionPluginName, New: func(io.Reader) (admission.Interface, error) { return restrict, nil }},
			{Name: RoleSizePluginName, New: func(io.Reader) (admission.Interface, error) { return newRoleSize(), nil }},
		},
	}
}
