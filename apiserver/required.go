package apiserver

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// optional lists fields, by type, that OpenShift's generated definitions require only because their
// Go types have no omitempty. The server accepts objects without them: it sets a default, or treats
// a missing field as empty. Clients that check objects against the definitions, as `oc create`
// does, would reject these objects.
var optional = map[string][]string{
	"authorization/v1.Action":                            actionFields,
	"authorization/v1.ClusterRole":                       {"rules"},
	"authorization/v1.ClusterRoleBinding":                {"subjects"},
	"authorization/v1.GroupRestriction":                  {"groups", "labels"},
	"authorization/v1.LocalResourceAccessReview":         actionFields,
	"authorization/v1.LocalSubjectAccessReview":          slices.Concat(actionFields, subjectFields),
	"authorization/v1.ResourceAccessReview":              actionFields,
	"authorization/v1.Role":                              {"rules"},
	"authorization/v1.RoleBinding":                       {"subjects"},
	"authorization/v1.RoleBindingRestrictionSpec":        {"userrestriction", "grouprestriction", "serviceaccountrestriction"},
	"authorization/v1.ServiceAccountRestriction":         {"serviceaccounts", "namespaces"},
	"authorization/v1.SubjectAccessReview":               slices.Concat(actionFields, subjectFields),
	"authorization/v1.UserRestriction":                   {"users", "groups", "labels"},
	"build/v1.BuildVolume":                               {"name", "source", "mounts"},
	"build/v1.BuildVolumeMount":                          {"destinationPath"},
	"build/v1.BuildVolumeSource":                         {"type"},
	"build/v1.SecretSpec":                                {"secretSource", "mountPath"},
	"build/v1.SourceRevision":                            {"type"},
	"image/v1.ImageLayer":                                {"name", "size", "mediaType"},
	"image/v1.TagReferencePolicy":                        {"type"},
	"network/v1.EgressNetworkPolicy":                     {"spec"},
	"network/v1.EgressNetworkPolicySpec":                 {"egress"},
	"network/v1.NetNamespace":                            {"netid"},
	"quota/v1.ClusterResourceQuotaSpec":                  {"quota"},
	"route/v1.RouteHTTPHeader":                           {"name", "action"},
	"route/v1.RouteHTTPHeaderActionUnion":                {"type"},
	"route/v1.RouteSetHTTPHeader":                        {"value"},
	"route/v1.RouteTargetReference":                      {"kind"},
	"route/v1.TLSConfig":                                 {"termination"},
	"security/v1.PodSecurityPolicyReview":                {"spec"},
	"security/v1.PodSecurityPolicyReviewSpec":            {"template"},
	"security/v1.PodSecurityPolicySelfSubjectReview":     {"spec"},
	"security/v1.PodSecurityPolicySelfSubjectReviewSpec": {"template"},
	"security/v1.PodSecurityPolicySubjectReview":         {"spec"},
	"security/v1.PodSecurityPolicySubjectReviewSpec":     {"template"},
	"security/v1.SecurityContextConstraints":             {"priority", "defaultAddCapabilities", "requiredDropCapabilities", "allowedCapabilities", "volumes"},
	"template/v1.Template":                               {"objects"},
	"template/v1.TemplateInstance":                       {"spec"},
	"template/v1.TemplateInstanceSpec":                   {"template"},
	"user/v1.Group":                                      {"users"},
	"user/v1.Identity":                                   {"user"},
	"user/v1.User":                                       {"groups"},
}

// actionFields and subjectFields are the optional fields of access reviews.
var (
	actionFields  = []string{"namespace", "resourceAPIGroup", "resourceAPIVersion", "resourceName", "path"}
	subjectFields = []string{"user", "groups", "scopes"}
)

// required returns the fields that clients must set in objects of an OpenShift type. It omits
// booleans, because a missing boolean is false.
func required(path string, schema spec.Schema) []string {
	unneeded := optional[strings.TrimPrefix(path, wireTypes)]
	return slices.DeleteFunc(slices.Clone(schema.Required), func(field string) bool {
		property := schema.Properties[field]
		return property.Type.Contains("boolean") || slices.Contains(unneeded, field)
	})
}
