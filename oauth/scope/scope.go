// Package scope says what a token may be used for. A scope limits a token that identifies its user: a request must be covered
// by one of the token's scopes before the user's own rights are asked. It only answers questions and knows no storage.
//
// Source: OpenShift 3.11 Cluster Administration, chapter 13 (Scoped Tokens); 3.9 Architecture, 4.1.4.5 for the scopes that the
// metadata document names.
package scope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ExtraKey is the key in a user's extra information under which the scopes of the token stand.
const ExtraKey = "scopes.authorization.openshift.io"

// The scopes that follow an intention: their rules are made here.
const (
	// Full allows everything that the user may do.
	Full = "user:full"
	// Info allows to read the user: name, groups.
	Info = "user:info"
	// CheckAccess allows reviews of the user's own rights.
	CheckAccess = "user:check-access"
	// ListProjects allows to list and watch all projects that the user sees.
	ListProjects = "user:list-projects"
	// ListScopedProjects allows the same for the namespaces of the token's other scopes alone.
	ListScopedProjects = "user:list-scoped-projects"
)

// rolePrefix begins a scope that follows a cluster role.
const rolePrefix = "role:"

// AllNamespaces is the namespace of a role scope that counts everywhere.
const AllNamespaces = "*"

// Supported are the scopes that the metadata document names, in its order.
func Supported() []string {
	return []string{Full, Info, CheckAccess, ListScopedProjects, ListProjects}
}

// Role is a scope `role:<cluster role>:<namespace>[:!]`.
type Role struct {
	// Name is the cluster role's. It may hold colons, as `system:image-puller` does.
	Name string
	// Namespace is where the role counts, or AllNamespaces.
	Namespace string
	// Escalating also allows what the role allows on secrets, tokens, roles and bindings.
	Escalating bool
}

// ParseRole reads a role scope. A text of another form is an error that names it.
func ParseRole(text string) (Role, error) {
	rest, ok := strings.CutPrefix(text, rolePrefix)
	if !ok {
		return Role{}, fmt.Errorf("parse scope %q: must begin with %s", text, rolePrefix)
	}
	rest, escalating := strings.CutSuffix(rest, ":!")
	colon := strings.LastIndex(rest, ":")
	if colon < 0 {
		return Role{}, fmt.Errorf("parse scope %q: must be role:<cluster role>:<namespace>, with :! behind it to allow escalating resources", text)
	}
	role := Role{Name: rest[:colon], Namespace: rest[colon+1:], Escalating: escalating}
	if role.Name == "" || len(path.IsValidPathSegmentName(role.Name)) > 0 {
		return Role{}, fmt.Errorf("parse scope %q: %q is no name of a cluster role", text, role.Name)
	}
	if role.Namespace != AllNamespaces && len(validation.IsDNS1123Label(role.Namespace)) > 0 {
		return Role{}, fmt.Errorf("parse scope %q: %q is no namespace; %s stands for all", text, role.Namespace, AllNamespaces)
	}
	return role, nil
}

// String is the scope's text.
func (r Role) String() string {
	text := rolePrefix + r.Name + ":" + r.Namespace
	if r.Escalating {
		return text + ":!"
	}
	return text
}

// Validate refuses a text that is no scope.
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

// Split gives the scopes of a request parameter: texts apart by spaces, each once, in their order.
func Split(parameter string) []string {
	var scopes []string
	for _, text := range strings.Fields(parameter) {
		if !slices.Contains(scopes, text) {
			scopes = append(scopes, text)
		}
	}
	return scopes
}

// Covers tells whether granted scopes include all of the asked ones, so that a person need not be asked again.
func Covers(granted, asked []string) bool {
	for _, text := range asked {
		if !slices.Contains(granted, text) && !slices.Contains(granted, Full) {
			return false
		}
	}
	return true
}

// Namespaces are those whose project a token of these scopes may see; all is true where every one is.
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
