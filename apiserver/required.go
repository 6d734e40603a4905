package apiserver

import (
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// optional lists fields, by type, that OpenShift's generated definitions require only because their
// Go types have no omitempty. The server accepts objects without them: it sets a default, or a
// missing field means an empty one. Clients that check objects against the definitions would reject
// these objects, for example the client-side validation of `oc create`.
var optional = map[string][]string{
	"authorization/v1.Action":                    actionFields,
	"authorization/v1.LocalResourceAccessReview": actionFields,
	"authorization/v1.LocalSubjectAccessReview":  slices.Concat(actionFields, subjectFields),
	"authorization/v1.ResourceAccessReview":      actionFields,
	"authorization/v1.SubjectAccessReview":       slices.Concat(actionFields, subjectFields),
}

// actionFields and subjectFields are the optional fields of access reviews.
var (
	actionFields  = []string{"namespace", "resourceAPIGroup", "resourceAPIVersion", "resourceName", "path"}
	subjectFields = []string{"user", "groups", "scopes"}
)

// required returns the fields of a definition of an OpenShift type that clients must set. A missing
// boolean is false.
func required(path string, schema spec.Schema) []string {
	unneeded := optional[strings.TrimPrefix(path, wireTypes)]
	return slices.DeleteFunc(slices.Clone(schema.Required), func(field string) bool {
		property := schema.Properties[field]
		return property.Type.Contains("boolean") || slices.Contains(unneeded, field)
	})
}
