// Package scope evaluates token scopes. Scopes limit a token: both one of the token's scopes and
// the user's own permissions must allow a request. The package has no state.
//
// Source: OpenShift 3.11 Cluster Administration, chapter 13 (Scoped Tokens); 3.9 Architecture,
// 4.1.4.5 for the scopes that the metadata document lists.
package scope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ExtraKey is the key in the user's extra information that contains the token's scopes.
const ExtraKey = "scopes.authorization.openshift.io"

// User scopes. This package defines their rules.
const (
	// Full allows everything that the user is allowed to do.
	Full = "user:full"
	// Info allows reading the user's name and groups.
	Info = "user:info"
	// CheckAccess allows reviews of the user's own permissions.
	CheckAccess = "user:check-access"
	// ListProjects allows listing and watching all of the user's projects.
	ListProjects = "user:list-projects"
	// ListScopedProjects allows listing and watching only the projects in the token's other scopes.
	ListScopedProjects = "user:list-scoped-projects"
)

// rolePrefix is the prefix of scopes that use a cluster role.
const rolePrefix = "role:"

// AllNamespaces is the namespace in a role scope that applies in all namespaces.
const AllNamespaces = "*"

// Supported returns the user scopes, in the order in which the metadata document lists them.
func Supported() []string {
	return []string{Full, Info, CheckAccess, ListScopedProjects, ListProjects}
}

// Role is a scope of the form `role:<cluster role>:<namespace>[:!]`.
type Role struct {
	// Name is the cluster role's name. It can contain colons, such as `system:image-puller`.
	Name string
	// Namespace is the namespace in which the role applies, or AllNamespaces.
	Namespace string
	// Escalating means that the scope includes the role's permissions on secrets, tokens, roles and
	// bindings.
	Escalating bool
}

// ParseRole parses a role scope.
func ParseRole(text string) (Role, error) {
	rest, ok := strings.CutPrefix(text, rolePrefix)
	if !ok {
		return Role{}, fmt.Errorf("parse scope %q: must begin with %s", text, rolePrefix)
	}
	rest, escalating := strings.CutSuffix(rest, ":!")
	colon := strings.LastIndex(rest, ":")
	if colon < 0 {
		return Role{}, fmt.Errorf("parse scope %q: must be role:<cluster role>:<namespace>, followed by :! to allow escalating resources", text)
	}
	role := Role{Name: rest[:colon], Namespace: rest[colon+1:], Escalating: escalating}
	if role.Name == "" || len(content.IsPathSegmentName(role.Name)) > 0 {
		return Role{}, fmt.Errorf("parse scope %q: %q is not the name of a cluster role", text, role.Name)
	}
	if role.Namespace != AllNamespaces && len(validation.IsDNS1123Label(role.Namespace)) > 0 {
		return Role{}, fmt.Errorf("parse scope %q: %q is not a namespace; %s means all", text, role.Namespace, AllNamespaces)
	}
	return role, nil
}

// String returns the text of the scope.
func (r Role) String() string {
	text := rolePrefix + r.Name + ":" + r.Namespace
	if r.Escalating {
		return text + ":!"
	}
	return text
}

// Validate rejects an invalid scope.
func Validate(text string) error {
	if slices.Contains(Supported(), text) {
		return nil
	}
	if strings.HasPrefix(text, rolePrefix) {
		_, err := ParseRole(text)
		return err
	}
	return fmt.Errorf("parse scope %q: unknown; scopes are %s and role:<cluster role>:<namespace>", text, strings.Join(Supported(), ", "))
}

// MaxParameter is the maximum length, in bytes, of each of three parameters: a redirect URI, a
// state, and all scopes in a request together. With this limit, the object for a code or token
// stays small.
const MaxParameter = 4 << 10

// Split returns the scopes in a request parameter. The parameter separates scopes with spaces.
// Split keeps their order and removes duplicates.
func Split(parameter string) []string {
	var scopes []string
	for _, text := range strings.Fields(parameter) {
		if !slices.Contains(scopes, text) {
			scopes = append(scopes, text)
		}
	}
	return scopes
}

// Covers reports whether the granted scopes include all required scopes, so that the user does not
// need to grant them again.
func Covers(granted, required []string) bool {
	for _, text := range required {
		if !slices.Contains(granted, text) && !slices.Contains(granted, Full) {
			return false
		}
	}
	return true
}

// Namespaces returns the namespaces whose projects a token with the given scopes can list. If all
// is true, the token can list every project.
func Namespaces(scopes []string) (some []string, all bool) {
	for _, text := range scopes {
		if text == Full || text == ListProjects {
			return nil, true
		}
		role, err := ParseRole(text)
		if err != nil {
			continue
		}
		if role.Namespace == AllNamespaces {
			return nil, true
		}
		if !slices.Contains(some, role.Namespace) {
			some = append(some, role.Namespace)
		}
	}
	return some, false
}
