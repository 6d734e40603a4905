package scope

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// API groups of the resources in the rules. OpenShift's resources are also served in the legacy
// group, whose name is empty.
const (
	legacyGroup        = ""
	userGroup          = "user.openshift.io"
	projectGroup       = "project.openshift.io"
	authorizationGroup = "authorization.openshift.io"
	oauthGroup         = "oauth.openshift.io"
	imageGroup         = "image.openshift.io"
	kubeReviewGroup    = "authorization.k8s.io"
	rbacGroup          = "rbac.authorization.k8s.io"
)

// userRules returns the rules for a user scope. supported is false if text is not a user scope.
func userRules(text string) (rules []rbacv1.PolicyRule, supported bool) {
	switch text {
	case Full:
		return []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
		}, true
	case Info:
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{legacyGroup, userGroup},
			Resources: []string{"users"}, ResourceNames: []string{"~"}}}, true
	case CheckAccess:
		return []rbacv1.PolicyRule{
			{Verbs: []string{"create"}, APIGroups: []string{kubeReviewGroup}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
			{Verbs: []string{"create"}, APIGroups: []string{legacyGroup, authorizationGroup},
				Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews", "localsubjectaccessreviews"}},
		}, true
	case ListProjects, ListScopedProjects:
		return []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{legacyGroup, projectGroup},
			Resources: []string{"projects"}}}, true
	}
	return nil, false
}

// discovery returns the rules that apply to every token. They allow the requests with which clients
// discover the API.
func discovery() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{
		"/version", "/version/", "/api", "/api/*", "/apis", "/apis/*", "/oapi", "/oapi/*", "/openapi", "/openapi/*",
		"/healthz", "/livez", "/readyz", "/.well-known", "/.well-known/*",
	}}}
}

// escalating returns the resources with which the holder of a role can gain more permissions:
// credentials, roles and bindings.
func escalating() map[string][]string {
	credentials := []string{"oauthauthorizetokens", "oauthaccesstokens", "oauthclients", "oauthclientauthorizations"}
	policies := []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
	return map[string][]string{
		legacyGroup:        slices.Concat([]string{"secrets", "serviceaccounts/token", "imagestreams/secrets"}, credentials, policies),
		imageGroup:         {"imagestreams/secrets"},
		oauthGroup:         credentials,
		authorizationGroup: policies,
		rbacGroup:          policies,
	}
}

// escalates reports whether a request impersonates a user or accesses an escalating resource. It
// checks the request instead of the role's rules, because a rule for all resources (`*`) includes
// the escalating resources. The verbs for constrained impersonation are impersonate:MODE and
// impersonate-on:MODE:VERB.
func escalates(request authorizer.Attributes) bool {
	if !request.IsResourceRequest() {
		return false
	}
	resource := request.GetResource()
	if sub := request.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	names := escalating()[request.GetAPIGroup()]
	return strings.HasPrefix(request.GetVerb(), "impersonate") || slices.Contains(names, resource) || slices.Contains(names, request.GetResource())
}
