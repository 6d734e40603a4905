package attack

import (
	"context"
	"slices"
	"strings"
	"testing"

	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// actor is a user or service account in the matrix.
type actor struct {
	name string
	// base is the actor whose permissions this actor also has. In the table, this actor's section
	// contains only the additional permissions.
	base string
	rest.ImpersonationConfig
	// own is the project in which the actor has a role. foreign is another tenant's project.
	own, foreign string
}

// These are the groups that the API server adds to users, depending on how they log in.
const (
	authenticated = "system:authenticated"
	oauthGroup    = "system:authenticated:oauth"
	accountGroup  = "system:serviceaccounts"
)

// roleOf maps each actor that has a role in their own project to that role.
var roleOf = map[string]string{"viewer": "view", "editor": "edit", "admin": "admin"}

// actorsOf returns all actors for a pair of projects. Each base precedes the actors that refer to
// it.
func actorsOf(project, foreign, node string) []actor {
	person := []string{authenticated, oauthGroup}
	account := []string{authenticated, accountGroup, accountGroup + ":" + project}
	identity := func(user string, groups ...string) rest.ImpersonationConfig {
		return rest.ImpersonationConfig{UserName: user, Groups: groups}
	}
	actors := []actor{
		{name: "anonymous", ImpersonationConfig: identity("system:anonymous", "system:unauthenticated")},
		{name: "authenticated", ImpersonationConfig: identity("matrix-certificate", authenticated)},
		{name: "user", base: "authenticated", ImpersonationConfig: identity("matrix-user", person...)},
		{name: "viewer", base: "user", ImpersonationConfig: identity("matrix-viewer-"+project, person...)},
		{name: "editor", base: "viewer", ImpersonationConfig: identity("matrix-editor-"+project, person...)},
		{name: "admin", base: "editor", ImpersonationConfig: identity("matrix-admin-"+project, person...)},
		{name: "default", base: "authenticated", ImpersonationConfig: identity("system:serviceaccount:"+project+":default", account...)},
		{name: "builder", base: "default", ImpersonationConfig: identity("system:serviceaccount:"+project+":builder", account...)},
		{name: "deployer", base: "default", ImpersonationConfig: identity("system:serviceaccount:"+project+":deployer", account...)},
		{name: "node", base: "authenticated", ImpersonationConfig: identity("system:node:"+node, authenticated, "system:nodes")},
		{name: "node-agent", base: "authenticated", ImpersonationConfig: identity("system:slipway-node", authenticated, "system:slipway-nodes")},
		{name: "node-dns", base: "authenticated", ImpersonationConfig: identity("system:slipway-dns", authenticated, "system:slipway-dns-servers")},
		{name: "node-idling", base: "authenticated", ImpersonationConfig: identity("system:slipway-idling", authenticated, "system:slipway-idling-proxies")},
		{name: "node-router", base: "authenticated", ImpersonationConfig: identity("system:slipway-router", authenticated, "system:slipway-routers")},
		{name: "node-storage", base: "authenticated", ImpersonationConfig: identity("system:slipway-storage", authenticated, "system:slipway-storages")},
		{name: "node-proxy", base: "authenticated", ImpersonationConfig: identity("system:kube-proxy", authenticated)},
		{name: "cluster-reader", base: "user", ImpersonationConfig: identity("matrix-reader", oauthGroup, authenticated, "system:cluster-readers")},
	}
	for i := range actors {
		actors[i].own, actors[i].foreign = project, foreign
	}
	return actors
}

// rightOf maps each service account to one of its permissions. A test waits for these permissions,
// because the platform grants the service accounts their roles only after it has created a project.
var rightOf = map[string]cell{
	"builder":  {scope: "own", verb: "get", group: "build.openshift.io", resource: "builds"},
	"deployer": {scope: "own", verb: "get", resource: "pods"},
}

// grant grants the actors their roles in their own project, and waits for the roles that the
// platform grants.
func grant(t *testing.T, c *kit.Cluster, actors []actor) {
	t.Helper()
	for _, a := range actors {
		if right, ok := rightOf[a.name]; ok {
			c.WaitFor("role of "+a.UserName, func(ctx context.Context) error { return a.mayOrError(ctx, c, right) })
		}
		role, ok := roleOf[a.name]
		if !ok {
			continue
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "matrix-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.UserName}},
		}
		if _, err := c.Client.RbacV1().RoleBindings(a.own).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.WaitFor("role of "+a.UserName, func(ctx context.Context) error {
			return a.mayOrError(ctx, c, cell{scope: "own", verb: "get", resource: "pods"})
		})
	}
}

// review sends an access review for an actor and a permission. It reports whether the actor has the
// permission.
func (a actor) review(ctx context.Context, c *kit.Cluster, right cell) (bool, error) {
	review := &kubeauthorizationv1.SubjectAccessReview{Spec: kubeauthorizationv1.SubjectAccessReviewSpec{User: a.UserName, Groups: a.Groups}}
	if right.scope == "path" {
		review.Spec.NonResourceAttributes = &kubeauthorizationv1.NonResourceAttributes{Verb: right.verb, Path: right.resource}
	} else {
		resource, name, _ := strings.Cut(strings.TrimSuffix(right.resource, "]"), "[")
		resource, subresource, _ := strings.Cut(resource, "/")
		if namespace := a.namespace(right.scope); isNamespace(resource) && name == "" {
			name = namespace
		}
		review.Spec.ResourceAttributes = &kubeauthorizationv1.ResourceAttributes{
			Namespace: a.namespace(right.scope), Verb: right.verb, Group: right.group, Version: "*",
			Resource: resource, Subresource: subresource, Name: name,
		}
	}
	result, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return result.Status.Allowed, nil
}

func (a actor) mayOrError(ctx context.Context, c *kit.Cluster, right cell) error {
	allowed, err := a.review(ctx, c, right)
	if err == nil && !allowed {
		err = errRefused
	}
	return err
}

// namespace returns the actor's namespace for a scope in the table.
func (a actor) namespace(scope string) string {
	switch scope {
	case "own":
		return a.own
	case "foreign":
		return a.foreign
	}
	return strings.TrimPrefix(scope, "in:") // platform namespace, or "" for the scope "cluster"
}

// platformScopes returns the scopes for the platform's namespaces that contain a RoleBinding for
// the actor.
func platformScopes(a actor, bindings []rbacv1.RoleBinding) (scopes []string) {
	for _, binding := range bindings {
		if binding.Namespace == a.own || binding.Namespace == a.foreign || strings.HasPrefix(binding.Namespace, "matrix") {
			continue
		}
		names := slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			switch s.Kind {
			case rbacv1.GroupKind:
				return slices.Contains(a.Groups, s.Name)
			case rbacv1.ServiceAccountKind:
				return a.UserName == "system:serviceaccount:"+s.Namespace+":"+s.Name
			}
			return s.Name == a.UserName
		})
		if scope := "in:" + binding.Namespace; names && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
