package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	authenticationv1 "k8s.io/api/authentication/v1"
	kubeauthorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/clientaddr"
)

// Users authenticate with an API server token. The token is either the password in basic
// authentication, or a bearer token that tokenPath issued.

// tokenPath is the path of the endpoint that implements Docker's token protocol.
const tokenPath = "/openshift/token"

// anonymousToken is the bearer token for clients without credentials.
const anonymousToken = "anonymous"

// caller is the sender of a request: a user or an anonymous client.
type caller struct {
	token          string
	hasCredentials bool   // true if the request has credentials
	address        string // the client's address
}

func (c caller) anonymous() bool { return c.token == "" }

// callerOf returns the caller that a request's credentials identify.
func callerOf(r *http.Request) caller {
	address := clientaddr.Network(r.RemoteAddr)
	if _, password, ok := r.BasicAuth(); ok {
		return caller{password, true, address}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return caller{}
	}
	if token == anonymousToken {
		token = ""
	}
	return caller{token, true, address}
}

// as returns a client configuration with the caller's permissions.
func (s *server) as(c caller) *rest.Config {
	config := rest.AnonymousClientConfig(s.Client)
	config.BearerToken = c.token
	return config
}

// errUnknown means that the API server rejects the caller's token.
var errUnknown = fmt.Errorf("the token is not valid; log in again")

// authenticate returns an error if the API server rejects the caller's token.
func (s *server) authenticate(ctx context.Context, c caller) error {
	free, err := s.turn(ctx, c)
	if err != nil {
		return err
	}
	defer free()
	client, err := authenticationclient.NewForConfig(s.as(c))
	if err != nil {
		return err
	}
	_, err = client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return errUnknown
	}
	return err
}

// turn waits until it can acquire one slot for the caller's address and one slot for the caller's
// token. It returns a function that releases the slots.
func (s *server) turn(ctx context.Context, c caller) (free func(), err error) {
	if s.shares == nil {
		return func() {}, nil
	}
	byAddress, err := s.shares.take(ctx, "address "+c.address)
	if err != nil || c.anonymous() {
		return byAddress, err
	}
	byToken, err := s.shares.take(ctx, "token "+c.id())
	if err != nil {
		byAddress()
		return nil, err
	}
	return func() {
		byToken()
		byAddress()
	}, nil
}

// may reports whether the caller has a permission. Concurrent requests that need the same
// permission, such as requests from many nodes that start the same image, share one access review.
func (s *server) may(ctx context.Context, c caller, right kubeauthorizationv1.ResourceAttributes) (bool, error) {
	free, err := s.turn(ctx, c)
	if err != nil {
		return false, err
	}
	defer free()
	right.Group = "image.openshift.io"
	question := strings.Join([]string{c.token, right.Verb, right.Namespace, right.Resource, right.Subresource, right.Name}, "\n")
	results := s.reviewed.DoChan(question, func() (any, error) {
		// The review must not be canceled with this request, because other requests also wait for
		// its result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return s.review(ctx, c, right)
	})
	select {
	case response := <-results:
		allowed, _ := response.Val.(bool)
		return allowed, response.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// reviewTimeout is the maximum duration of an access review.
const reviewTimeout = time.Minute

// review sends an access review for the caller's permission to the API server.
func (s *server) review(ctx context.Context, c caller, right kubeauthorizationv1.ResourceAttributes) (bool, error) {
	free, err := s.lookups.take(ctx)
	if err != nil {
		return false, err
	}
	defer free()
	if c.anonymous() {
		review := &kubeauthorizationv1.SubjectAccessReview{Spec: kubeauthorizationv1.SubjectAccessReviewSpec{
			User: "system:anonymous", Groups: []string{"system:unauthenticated"}, ResourceAttributes: &right,
		}}
		response, err := s.reviews.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && response.Status.Allowed, err
	}
	client, err := authorizationclient.NewForConfig(s.as(c))
	if err != nil {
		return false, err
	}
	review := &kubeauthorizationv1.SelfSubjectAccessReview{Spec: kubeauthorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	response, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return false, errUnknown
	}
	return err == nil && response.Status.Allowed, err
}

// layers returns the permission for a verb, get or update, on an image stream's layers.
func layers(verb, namespace, stream string) kubeauthorizationv1.ResourceAttributes {
	return kubeauthorizationv1.ResourceAttributes{Verb: verb, Namespace: namespace, Resource: "imagestreams", Subresource: "layers", Name: stream}
}

// pruning returns the permission to remove unreferenced content.
func pruning() kubeauthorizationv1.ResourceAttributes {
	return kubeauthorizationv1.ResourceAttributes{Verb: "delete", Resource: "images"}
}

// allowed reports whether the caller has a permission. If not, allowed sends the error response.
func (s *server) allowed(w http.ResponseWriter, r *http.Request, right kubeauthorizationv1.ResourceAttributes) bool {
	c := callerOf(r)
	if !c.hasCredentials {
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage("authentication required"))
		return false
	}
	ok, err := s.may(r.Context(), c, right)
	switch {
	case ok:
		return true
	case errors.Is(err, errUnknown):
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage(err.Error()))
	case errors.Is(err, errBusy):
		serveBusy(w, err.Error())
	case err != nil:
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage("the API server did not respond: "+err.Error()))
	case c.anonymous():
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage("authentication required"))
	default:
		serveError(w, errcode.ErrorCodeDenied.WithMessage(fmt.Sprintf("no permission to %s %s in project %q", right.Verb, resourceOf(right), right.Namespace)))
	}
	return false
}

func resourceOf(right kubeauthorizationv1.ResourceAttributes) string {
	if right.Subresource == "" {
		return right.Resource
	}
	return right.Resource + "/" + right.Subresource + " of " + fmt.Sprintf("%q", right.Name)
}

// challenge sends an error response that contains the URL from which clients can request tokens.
func challenge(w http.ResponseWriter, r *http.Request, err errcode.Error) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "https://"+r.Host+tokenPath))
	serveError(w, err)
}

func serveError(w http.ResponseWriter, err error) { _ = errcode.ServeJSON(w, err) }

// serveToken returns the token from basic authentication as a bearer token, if the API server
// accepts the token. Clients without credentials receive anonymousToken.
func (s *server) serveToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // clients then retry the request with GET
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	c := callerOf(r)
	token := anonymousToken
	if c.hasCredentials && !c.anonymous() {
		if err := s.authenticate(r.Context(), c); errors.Is(err, errBusy) {
			serveBusy(w, err.Error())
			return
		} else if err != nil {
			w.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
			serveError(w, errcode.ErrorCodeUnauthorized.WithMessage(err.Error()))
			return
		}
		token = c.token
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"token": token, "access_token": token})
}

// serveBase serves /v2/, which clients request to verify their credentials.
func (s *server) serveBase(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	if !c.hasCredentials {
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage("authentication required"))
		return
	}
	if !c.anonymous() {
		if err := s.authenticate(r.Context(), c); errors.Is(err, errBusy) {
			serveBusy(w, err.Error())
			return
		} else if err != nil {
			challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage(err.Error()))
			return
		}
	}
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}
