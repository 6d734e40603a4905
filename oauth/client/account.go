package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	routev1 "github.com/openshift/api/route/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/store"
)

// The annotations that make a service account an OAuth client.
const (
	annotationPrefix = "serviceaccounts.openshift.io/"
	redirectPrefix   = annotationPrefix + "oauth-redirecturi."
	referencePrefix  = annotationPrefix + "oauth-redirectreference."
)

// Event reasons for service accounts.
const (
	// NoRedirectURIs means that a service account is not a client because it has no redirect URI.
	NoRedirectURIs = "NoSAOAuthRedirectURIs"
	// NoTokens means that no secret contains a token of the service account.
	NoTokens = "NoSAOAuthTokens"
)

// Misconfigured means that a service account does not exist or is not set up as a client. The error
// text is the same in both cases, so that a user cannot determine which service accounts exist.
type Misconfigured struct{ Notice Notice }

// Error returns a message without the service account's name.
func (*Misconfigured) Error() string { return "the service account is not set up as an OAuth client" }

// Notice is a message for a service account's owner about the account's use as a client. Account is
// nil if the service account does not exist. If Reason is empty, the notice is sent only if the
// account has no token.
type Notice struct {
	Account         *corev1.ServiceAccount
	Reason, Message string
}

// ID returns the account's client_id.
func (n Notice) ID() string { return serviceaccount.MakeUsername(n.Account.Namespace, n.Account.Name) }

// AccountUID is an annotation on tokens, codes and grants. If their client is a service account,
// the annotation contains the account's UID. When the account is deleted, the tokens, codes and
// grants become invalid, because a new account with the same name has a different UID.
const AccountUID = "oauth.slipway.io/service-account-uid"

// Annotations returns the annotations for the client's tokens, codes and grants. It returns nil
// unless the client is a service account.
func (c *Client) Annotations() map[string]string {
	if c.Account == nil {
		return nil
	}
	return map[string]string{AccountUID: string(c.Account.UID)}
}

// Owns reports whether a token, code or grant that contains the client's name was issued to this
// client. It returns false if the object was issued to a deleted service account with the same
// name.
func (c *Client) Owns(object metav1.Object) bool {
	return c.Account == nil || object.GetAnnotations()[AccountUID] == string(c.Account.UID)
}

// Accounts finds service accounts that are clients.
type Accounts struct {
	// Kube reads service accounts and reviews tokens.
	Kube kubernetes.Interface
	// Cache reads the service accounts that tokens were issued to.
	Cache corelisters.ServiceAccountLister
	// Routes reads the routes that redirect references refer to.
	Routes store.Objects[*routev1.Route]
	// GrantMethod is the grant method for service accounts: `prompt` or `deny`.
	GrantMethod oauthv1.GrantHandlerType
}

func (a *Accounts) find(ctx context.Context, namespace, name string) (*Client, error) {
	account, err := a.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &Misconfigured{}
	case err != nil:
		return nil, fmt.Errorf("find service account %s/%s: %w", namespace, name, err)
	}
	id := serviceaccount.MakeUsername(namespace, name)
	redirects, problems := a.redirects(ctx, account)
	if len(redirects) == 0 {
		problems = append(problems, fmt.Sprintf("%s has no redirectURIs; set %s<some-value>=<redirect> or create a dynamic URI using %s<some-value>=<reference>",
			id, redirectPrefix, referencePrefix))
		message := problems[0]
		if len(problems) > 1 {
			message = "[" + strings.Join(problems, ", ") + "]"
		}
		return nil, &Misconfigured{Notice{account, NoRedirectURIs, message}}
	}
	return &Client{
		ID: id, RedirectURIs: redirects,
		GrantMethod: a.GrantMethod, Account: account, ScopeRestrictions: restrictions(namespace),
	}, nil
}

// Owns reports whether a token's client still exists. The client does not need a valid redirect
// URI. Owns assumes that a client that is not a service account exists.
func (a *Accounts) Owns(ctx context.Context, id string, token metav1.Object) (bool, error) {
	namespace, name, err := serviceaccount.SplitUsername(id)
	if err != nil {
		return true, nil
	}
	owns := func(account *corev1.ServiceAccount) bool { return (&Client{Account: account}).Owns(token) }
	if account, err := a.Cache.ServiceAccounts(namespace).Get(name); err == nil && owns(account) {
		return true, nil
	}
	// The cache might not contain a new account yet.
	account, err := a.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find service account %s/%s: %w", namespace, name, err)
	}
	return owns(account), nil
}

// restrictions limits a service account's scopes to user information and roles in its own
// namespace.
func restrictions(namespace string) []oauthv1.ScopeRestriction {
	return []oauthv1.ScopeRestriction{
		{ExactValues: []string{scope.Info, scope.CheckAccess}},
		{ClusterRole: &oauthv1.ClusterRoleScopeRestriction{RoleNames: []string{"*"}, Namespaces: []string{namespace}, AllowEscalation: true}},
	}
}

// verify reports whether a secret is one of the service account's API tokens.
func (a *Accounts) verify(ctx context.Context, id, secret string) (bool, error) {
	review, err := a.Kube.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: secret}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review token of %s: %w", id, err)
	}
	return review.Status.Authenticated && review.Status.User.Username == id, nil
}

// maxReferences is the maximum number of routes that are read for one service account.
const maxReferences = 32

// redirects returns the valid redirect URIs in a service account's annotations. For each invalid
// URI, it returns an error message.
func (a *Accounts) redirects(ctx context.Context,
	account *corev1.ServiceAccount) (addresses, problems []string) {
	references := 0
	for _, key := range slices.Sorted(maps.Keys(account.Annotations)) {
		value := account.Annotations[key]
		if name, ok := strings.CutPrefix(key, referencePrefix); ok {
			if references++; references > maxReferences {
				problems = append(problems, fmt.Sprintf("more than %d redirect references; the others are ignored", maxReferences))
				break
			}
			uris, err := a.referenced(ctx, account.Namespace, value, account.Annotations[redirectPrefix+name])
			if err != nil {
				problems = append(problems, err.Error())
			}
			addresses = append(addresses, uris...)
			continue
		}
		name, ok := strings.CutPrefix(key, redirectPrefix)
		if _, overrides := account.Annotations[referencePrefix+name]; !ok || overrides {
			continue
		}
		if _, err := parseRedirect(value); err == nil {
			addresses = append(addresses, value)
		}
	}
	return addresses, problems
}

// referenced returns the URLs of the route that a reference refers to. The parts of a URL that
// override contains replace the corresponding parts of each URL.
func (a *Accounts) referenced(ctx context.Context,
	namespace, text, override string) (addresses []string, err error) {
	var reference oauthv1.OAuthRedirectReference
	if err := json.Unmarshal([]byte(text), &reference); err != nil {
		return nil, fmt.Errorf("the reference %.100q is not an OAuthRedirectReference in JSON", text)
	}
	if reference.Kind != "OAuthRedirectReference" {
		return nil, fmt.Errorf("no kind %q is registered for version %q", reference.Kind, reference.APIVersion)
	}
	if kind := reference.Reference.Kind; kind != "Route" || reference.Reference.Group != "" && reference.Reference.Group != routev1.GroupName {
		return nil, fmt.Errorf("no kind %q is registered for version %q", kind, "v1")
	}
	route, err := a.Routes.Get(store.InNamespace(ctx, namespace), reference.Reference.Name)
	if err != nil {
		return nil, err
	}
	for _, ingress := range route.Status.Ingress {
		if ingress.Host == "" || rejected(ingress) {
			continue
		}
		address := overridden(route, ingress.Host, override)
		if _, err := parseRedirect(address); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

// rejected reports whether the router that wrote an ingress entry rejected the route.
func rejected(ingress routev1.RouteIngress) bool {
	return slices.ContainsFunc(ingress.Conditions, func(c routev1.RouteIngressCondition) bool {
		return c.Type == routev1.RouteAdmitted && c.Status == corev1.ConditionFalse
	})
}
