package router

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/router/environment"
)

// access controls access to metrics and statistics, which contain the names of routes and pods in
// all projects.
type access struct {
	settings environment.Settings
	// reviews is the client for token and access reviews. If it is nil, tokens are rejected. Its
	// rate limit bounds the load that guessed tokens cause on the API server.
	reviews kubernetes.Interface
}

// reviewTimeout limits how long the reviews for one request can take.
const reviewTimeout = 10 * time.Second

// guard requires the username and password of the statistics page. If they are not set, guard
// rejects every request, because every user on the machine can connect to the loopback addresses.
func (a access) guard(next http.Handler) http.Handler {
	user, password := a.settings.Text("STATS_USERNAME"), a.settings.Text("STATS_PASSWORD")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user == "" {
			http.Error(w, "to serve the statistics, set STATS_USERNAME and STATS_PASSWORD", http.StatusForbidden)
			return
		}
		name, secret, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(name), []byte(user))&subtle.ConstantTimeCompare([]byte(secret), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="router"`)
			http.Error(w, "the user name and password of the statistics are required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guardMetrics also accepts tokens of users who are allowed to get routers/metrics with the
// router's name, such as the Prometheus service account.
func (a access) guardMetrics(next http.Handler) http.Handler {
	basicAuth := a.guard(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || a.reviews == nil {
			basicAuth.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
		defer cancel()
		if status, message := a.review(ctx, token); status != http.StatusOK {
			http.Error(w, message, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// review uses the API to check whether a token is valid and whether its user is allowed to get the
// metrics. If so, status is 200.
func (a access) review(ctx context.Context, token string) (status int, message string) {
	spec := authenticationv1.TokenReviewSpec{Token: token}
	tokenReview, err := a.reviews.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, "cannot check token: the router's service account may not create tokenreviews, or the API server does not respond"
	}
	if !tokenReview.Status.Authenticated {
		return http.StatusUnauthorized, "the token is not valid"
	}
	user := tokenReview.Status.User
	name := canonical(a.settings)
	accessReview := &kubeauthorizationv1.SubjectAccessReview{Spec: kubeauthorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string]kubeauthorizationv1.ExtraValue{},
		ResourceAttributes: &kubeauthorizationv1.ResourceAttributes{
			Verb: "get", Group: routev1.GroupName, Resource: "routers", Subresource: "metrics", Name: name,
		},
	}}
	for key, values := range user.Extra { // Extra includes the token's scopes
		accessReview.Spec.Extra[key] = kubeauthorizationv1.ExtraValue(values)
	}
	decision, err := a.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, accessReview, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, "cannot check access: the router's service account may not create subjectaccessreviews, or the API server does not respond"
	}
	if !decision.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf("user %q cannot get routers/metrics %q in API group %q", user.Username, name, routev1.GroupName)
	}
	return http.StatusOK, ""
}
