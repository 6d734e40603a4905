package attack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// kind is a resource, a subresource, or a name that rules contain but that is not an API resource.
type kind struct {
	group, resource string
	// path is the URL path under which the server serves the resource, such as /apis/apps/v1. It is
	// empty for a name that is not a resource.
	path       string
	namespaced bool
	verbs      []string
}

// universe contains every permission in the matrix.
type universe struct {
	kinds []kind
	paths []string
}

// extra contains permissions that the platform's handlers and upstream's admission plugins check
// but that discovery does not list.
var extra = []kind{
	{group: "route.openshift.io", resource: "routers/metrics", verbs: []string{"get"}},
	{group: "route.openshift.io", resource: "routes/custom-host", namespaced: true, verbs: []string{"create", "update"}},
	{resource: "endpoints/restricted", namespaced: true, verbs: []string{"create"}},
	{resource: "nodes/proxy", verbs: []string{"get", "create"}},
	{resource: "nodes/metrics", verbs: []string{"get"}},
	{resource: "nodes/stats", verbs: []string{"get"}},
	{resource: "nodes/log", verbs: []string{"get"}},
	{resource: "nodes/configz", verbs: []string{"get"}},
	{resource: "nodes/healthz", verbs: []string{"get"}},
	{resource: "nodes/pods", verbs: []string{"get"}},
	{resource: "nodes/checkpoint", verbs: []string{"create"}},
	{resource: "users", verbs: []string{"impersonate"}},
	{resource: "groups", verbs: []string{"impersonate"}},
	{resource: "serviceaccounts", namespaced: true, verbs: []string{"impersonate"}},
	{group: "authentication.k8s.io", resource: "uids", verbs: []string{"impersonate"}},
	{group: "authentication.k8s.io", resource: "userextras/scopes.authorization.openshift.io", verbs: []string{"impersonate"}},
	{group: rbacv1.GroupName, resource: "clusterroles", verbs: []string{"bind", "escalate"}},
	{group: rbacv1.GroupName, resource: "roles", namespaced: true, verbs: []string{"bind", "escalate"}},
	{group: "certificates.k8s.io", resource: "signers", verbs: []string{"approve", "attest", "sign"}},
	{group: "security.openshift.io", resource: "securitycontextconstraints", verbs: []string{"use"}},
}

// discoverAll collects the resources in the API server's discovery documents, the additional names
// in its roles, and the permissions in extra.
func discoverAll(t *testing.T, c *kit.Cluster) universe {
	t.Helper()
	_, lists, err := c.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	u := universe{}
	for _, list := range lists {
		path := "/apis/" + list.GroupVersion
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group, path = "", "/api/"+list.GroupVersion
		}
		for _, r := range list.APIResources {
			u.add(kind{group, r.Name, path, r.Namespaced || isNamespace(r.Name), r.Verbs})
		}
	}
	roles, err := c.Client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			u.addRule(rule)
		}
	}
	for _, right := range extra {
		u.add(right)
	}
	var index metav1.RootPaths
	if err := json.Unmarshal([]byte(c.Administrator().May("GET", "/", "")), &index); err != nil {
		t.Fatal(err)
	}
	u.paths = index.Paths
	slices.Sort(u.paths)
	slices.SortFunc(u.kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource)) })
	return u
}

// isNamespace reports whether a resource is a namespace or a subresource of a namespace. A
// permission on one of these resources applies in the namespace itself.
func isNamespace(resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return base == "namespaces" || base == "projects"
}

// add adds a resource, or merges its verbs with the verbs of another version of the resource.
func (u *universe) add(k kind) {
	at := slices.IndexFunc(u.kinds, func(other kind) bool { return other.group == k.group && other.resource == k.resource })
	if at < 0 {
		k.verbs = slices.Sorted(slices.Values(k.verbs))
		u.kinds = append(u.kinds, k)
		return
	}
	verbs := slices.Concat(u.kinds[at].verbs, k.verbs)
	slices.Sort(verbs)
	u.kinds[at].verbs = slices.Compact(verbs)
}

// addRule adds the resources in a rule that belong to served groups. It ignores groups that no
// longer exist, and OpenShift's old resource names in the core group.
func (u *universe) addRule(rule rbacv1.PolicyRule) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			base, _, _ := strings.Cut(resource, "/")
			at := slices.IndexFunc(u.kinds, func(k kind) bool { return k.group == group && k.resource == base && k.path != "" })
			inGroup := slices.ContainsFunc(u.kinds, func(k kind) bool { return k.group == group && k.path != "" })
			if !inGroup || base == "*" || group == "" && at < 0 {
				continue
			}
			names := []string{resource}
			for _, name := range rule.ResourceNames {
				names = append(names, resource+"["+name+"]")
			}
			for _, name := range names {
				verbs := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "*" })
				if len(verbs) > 0 {
					u.add(kind{group: group, resource: name, namespaced: at < 0 || u.kinds[at].namespaced, verbs: verbs})
				}
			}
		}
	}
}

// cells returns every permission that an actor could have in the cluster scope and the given
// scopes.
func (u universe) cells(scopes []string) (all []cell) {
	for _, k := range u.kinds {
		for _, verb := range k.verbs {
			all = append(all, cell{"cluster", verb, k.group, k.resource})
			for _, scope := range scopes {
				if k.namespaced {
					all = append(all, cell{scope, verb, k.group, k.resource})
				}
			}
		}
	}
	for _, path := range u.paths {
		for _, verb := range pathVerbs {
			all = append(all, cell{"path", verb, "-", path})
		}
	}
	return all
}

// pathVerbs contains the verbs for requests to non-resource paths.
var pathVerbs = []string{"get", "post"}

// lines returns the universe as a section of the table. The test compares this section with the
// table, so it reports a resource that the table does not contain.
func (u universe) lines() []string {
	list := rights{}
	for _, k := range u.kinds {
		scope := "cluster"
		if k.namespaced {
			scope = "project"
		}
		if k.path == "" {
			scope = "right"
		}
		for _, verb := range k.verbs {
			list[cell{scope, verb, k.group, k.resource}] = true
		}
	}
	for _, path := range u.paths {
		list[cell{"path", "any", "-", path}] = true
	}
	return u.collapse(list).lines("")
}

// collapsed contains the paths whose children share one line of the table if their permissions are
// equal.
var collapsed = []string{"/.well-known/", "/api/", "/apis/", "/openapi/v3/", "/healthz/", "/livez/", "/readyz/", "/metrics/", "/debug/"}

// collapse replaces all children of a path with one entry, PATH/*, if their permissions are equal.
func (u universe) collapse(r rights) rights {
	short := rights{}
	for right := range r {
		short[right] = true
		if right.scope != "path" {
			continue
		}
		for _, parent := range collapsed {
			all := strings.HasPrefix(right.resource, parent) && !slices.ContainsFunc(u.paths, func(path string) bool {
				return strings.HasPrefix(path, parent) && !r[cell{right.scope, right.verb, right.group, path}]
			})
			if all {
				delete(short, right)
				short[cell{right.scope, right.verb, right.group, parent + "*"}] = true
				break
			}
		}
	}
	return short
}

// expand is the inverse of contract. A permission in the cluster scope also applies in every
// project, and a permission on a resource also applies to each of its objects.
func (u universe) expand(r rights, scopes []string) rights {
	long := rights{}
	for right := range r {
		parent, children := strings.CutSuffix(right.resource, "*")
		switch {
		case right.scope == "path" && children:
			for _, path := range u.paths {
				if strings.HasPrefix(path, parent) {
					long[cell{right.scope, right.verb, right.group, path}] = true
				}
			}
		default:
			long[right] = true
		}
		if right.scope == "cluster" && u.namespaced(right) {
			for _, scope := range scopes {
				long[cell{scope, right.verb, right.group, right.resource}] = true
			}
		}
	}
	for _, k := range u.kinds {
		base, _, ok := strings.Cut(k.resource, "[")
		for _, verb := range k.verbs {
			for _, scope := range append([]string{"cluster"}, scopes...) {
				if ok && long[cell{scope, verb, k.group, base}] {
					long[cell{scope, verb, k.group, k.resource}] = true
				}
			}
		}
	}
	return long
}

// contract removes the permissions that expand adds.
func (u universe) contract(r rights) rights {
	short := rights{}
	for right := range r {
		everywhere := cell{"cluster", right.verb, right.group, right.resource}
		base, _, ok := strings.Cut(right.resource, "[")
		if right.scope != "path" && right.scope != "cluster" && r[everywhere] || ok && r[cell{right.scope, right.verb, right.group, base}] {
			continue
		}
		short[right] = true
	}
	return u.collapse(short)
}

func (u universe) namespaced(right cell) bool {
	return slices.ContainsFunc(u.kinds, func(k kind) bool {
		return k.group == right.group && k.resource == right.resource && k.namespaced
	})
}
