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

// Users come with a token of the API server, as the password of basic authentication or as the
// bearer token that the path below gives them for it.

// tokenPath answers docker's token protocol.
const tokenPath = "/openshift/token"

// anonymousToken is the bearer token of whoever has no credentials.
const anonymousToken = "anonymous"

// caller is who asks: a user's token, or nobody in particular.
type caller struct {
	token   string
	known   bool   // there were credentials
	address string // of the client
}

func (c caller) anonymous() bool { return c.token == "" }

// callerOf reads a request's credentials.
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

// as connects with the rights of the caller.
func (s *server) as(c caller) *rest.Config {
	config := rest.AnonymousClientConfig(s.Client)
	config.BearerToken = c.token
	return config
}

// errUnknown says that the API server does not know the caller's token.
var errUnknown = fmt.Errorf("the token is not valid: log in again")

// authenticate says whether the API server knows the caller.
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

// turn waits until the shares of the caller's address and token have a place for a question to the
// API server.
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

// may says whether the caller has a right. Requests that ask the same at the same time, such as
// those of many nodes that start one image, get the answer to one question.
func (s *server) may(ctx context.Context, c caller, right kubeauthorizationv1.ResourceAttributes) (bool, error) {
	free, err := s.turn(ctx, c)
	if err != nil {
		return false, err
	}
	defer free()
	right.Group = "image.openshift.io"
	question := strings.Join([]string{c.token, right.Verb, right.Namespace, right.Resource, right.Subresource, right.Name}, "\n")
	answers := s.reviewed.DoChan(question, func() (any, error) {
		// others wait for the answer too
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return s.review(ctx, c, right)
	})
	select {
	case answer := <-answers:
		allowed, _ := answer.Val.(bool)
		return allowed, answer.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// reviewTimeout is how long the API server may take to say whether somebody has a right.
const reviewTimeout = time.Minute

// review asks the API server whether the caller has a right.
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
		answer, err := s.reviews.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
	client, err := authorizationclient.NewForConfig(s.as(c))
	if err != nil {
		return false, err
	}
	review := &kubeauthorizationv1.SelfSubjectAccessReview{Spec: kubeauthorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return false, errUnknown
	}
	return err == nil && answer.Status.Allowed, err
}

// layers is a right on the layers of a stream: get or update.
func layers(verb, namespace, stream string) kubeauthorizationv1.ResourceAttributes {
	return kubeauthorizationv1.ResourceAttributes{Verb: verb, Namespace: namespace, Resource: "imagestreams", Subresource: "layers", Name: stream}
}

// pruning is the right to remove what no stream refers to.
func pruning() kubeauthorizationv1.ResourceAttributes {
	return kubeauthorizationv1.ResourceAttributes{Verb: "delete", Resource: "images"}
}

// allowed answers the request itself if the caller lacks a right.
func (s *server) allowed(w http.ResponseWriter, r *http.Request, right kubeauthorizationv1.ResourceAttributes) bool {
	c := callerOf(r)
	if !c.known {
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
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage("the API server did not answer: "+err.Error()))
	case c.anonymous():
		challenge(w, r, errcode.ErrorCodeUnauthorized.WithMessage("authentication required"))
	default:
		serveError(w, errcode.ErrorCodeDenied.WithMessage(fmt.Sprintf("no right to %s %s in project %q", right.Verb, resourceOf(right), right.Namespace)))
	}
	return false
}

func resourceOf(right kubeauthorizationv1.ResourceAttributes) string {
	if right.Subresource == "" {
		return right.Resource
	}
	return right.Resource + "/" + right.Subresource + " of " + fmt.Sprintf("%q", right.Name)
}

// challenge tells a client where tokens are to be had.
func challenge(w http.ResponseWriter, r *http.Request, err errcode.Error) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "https://"+r.Host+tokenPath))
	serveError(w, err)
}

func serveError(w http.ResponseWriter, err error) { _ = errcode.ServeJSON(w, err) }

// serveToken gives the token in basic authentication back as a bearer token, after the API server
// has confirmed it.
func (s *server) serveToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // clients then use GET
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	c := callerOf(r)
	token := anonymousToken
	if c.known && !c.anonymous() {
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

// serveBase answers /v2/, by which clients find out whether their credentials are good.
func (s *server) serveBase(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r)
	if !c.known {
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
