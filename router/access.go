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
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/router/settings"
)

// access says who sees metrics and statistics: they name all projects' routes and pods.
type access struct {
	settings settings.Settings
	// reviews is where tokens and rights are reviewed; nil for nowhere. Its limit of requests bounds what guesses cost the API.
	reviews kubernetes.Interface
}

// reviewTime bounds the reviews of a request.
const reviewTime = 10 * time.Second

// guard asks for user and password of the statistics. Where none are set, it answers nobody: what reaches this machine's
// loopback addresses need not be its administrator.
func (a access) guard(next http.Handler) http.Handler {
	user, password := a.settings.Text("STATS_USERNAME"), a.settings.Text("STATS_PASSWORD")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user == "" {
			http.Error(w, "set STATS_USERNAME and STATS_PASSWORD to see this", http.StatusForbidden)
			return
		}
		name, secret, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(name), []byte(user))&subtle.ConstantTimeCompare([]byte(secret), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="router"`)
			http.Error(w, "user and password of the statistics are needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guardMetrics lets those in too whose token has the right to get routers/metrics of the router's name, as Prometheus' service account has.
func (a access) guardMetrics(next http.Handler) http.Handler {
	otherwise := a.guard(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bears := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bears || a.reviews == nil {
			otherwise.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
		defer cancel()
		if status, message := a.review(ctx, token); status != http.StatusOK {
			http.Error(w, message, status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// review asks the API who has a token and what he may do.
func (a access) review(ctx context.Context, token string) (status int, message string) {
	found, err := a.reviews.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, "the token cannot be reviewed: the router's service account may not, or the API does not answer"
	}
	if !found.Status.Authenticated {
		return http.StatusUnauthorized, "the token is not valid"
	}
	user := found.Status.User
	name := canonical(a.settings)
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: routev1.GroupName, Resource: "routers", Subresource: "metrics", Name: name},
	}}
	for key, values := range user.Extra { // among them the scopes of a token
		asked.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	decided, err := a.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, asked, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, "the right cannot be reviewed: the router's service account may not, or the API does not answer"
	}
	if !decided.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf("user %q cannot get routers/metrics %q in API group %q", user.Username, name, routev1.GroupName)
	}
	return http.StatusOK, ""
}
