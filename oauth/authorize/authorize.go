// Package authorize serves /oauth/authorize, where clients send users to obtain a code or a token,
// and /oauth/approve, where users grant scopes.
//
// Source: RFC 6749, sections 4.1 and 4.2, RFC 7636, and OpenShift 3.9 Architecture, 4.1.4.6. For
// both response types, errors are in the query of the redirect URI, as OpenShift's clients expect.
package authorize

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"

	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/grant"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/token"
)

// Server handles client requests for codes and tokens.
type Server struct {
	Clients *client.Registry
	Login   *login.Server
	Grants  *grant.Grants
	Issuer  *token.Issuer
	Pages   *page.Pages
	// GrantMethod applies if a user has not granted the scopes and the client does not set a grant
	// method. It is auto, prompt or deny.
	GrantMethod oauthv1.GrantHandlerType
	// Notice is called with each notice for a service account's owner. It must not block.
	Notice func(client.Notice)
	// Report is called with each error that the administrator must resolve.
	Report func(error)
}

// ServeAuthorize handles a client's request: it authenticates the user, checks the granted scopes,
// and redirects with a code or a token.
//
// It looks up the client only after it has authenticated the user. Therefore, an unauthenticated
// request receives the same response for every client, service account and project.
func (s *Server) ServeAuthorize(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || repeated(r.Form) != "" {
		s.refuse(w, r, &refusal{Problem: token.Problem{Code: "invalid_request", Description: "the parameters cannot be parsed, or one of them appears twice"}})
		return
	}
	authenticate := s.Login.Authenticate
	if r.Form.Get("client_id") == client.Challenging {
		authenticate = s.Login.AuthenticateProgram
	}
	user, err := authenticate(r)
	switch {
	case errors.Is(err, throttle.ErrThrottled):
		w.Header().Set("Retry-After", "30")
		http.Error(w, login.Explain(err), http.StatusTooManyRequests)
		return
	case err != nil && !login.Proven(err):
		s.refuse(w, r, &refusal{Problem: token.Problem{Code: "access_denied", Description: login.Explain(err)}, cause: err})
		return
	case err == nil && user == nil:
		s.Login.Demand(w, r, challenges(r))
		return
	}
	request, refusal := s.read(r.Context(), r.Form)
	if refusal != nil {
		s.refuse(w, r, refusal)
		return
	}
	if err != nil {
		s.refuse(w, r, request.refusal("access_denied", login.Explain(err), err))
		return
	}
	granted, err := s.hasGrant(r, request, user)
	switch {
	case err != nil:
		s.refuse(w, r, request.refusal(token.ServerError().Code, token.ServerError().Description, err))
	case granted:
		s.grant(w, r, request, user)
	case s.method(request.client) == oauthv1.GrantHandlerPrompt:
		query := url.Values{"then": {r.URL.EscapedPath() + "?" + r.Form.Encode()}}
		http.Redirect(w, r, ApprovePath+"?"+query.Encode(), http.StatusFound)
	default:
		s.refuse(w, r, request.refusal("access_denied", "the client may not be granted access", nil))
	}
}

// challenges reports whether a request comes from a program that supports challenges: its client_id
// is client.Challenging, or it has the header login.CSRFHeader.
func challenges(r *http.Request) bool {
	return r.Form.Get("client_id") == client.Challenging || r.Header.Get(login.CSRFHeader) != ""
}

// method returns the grant method for a client.
func (s *Server) method(c *client.Client) oauthv1.GrantHandlerType {
	if c.GrantMethod != "" {
		return c.GrantMethod
	}
	return s.GrantMethod
}

func (s *Server) hasGrant(r *http.Request, req *request, user *userv1.User) (bool, error) {
	if s.method(req.client) == oauthv1.GrantHandlerAuto {
		return true, nil
	}
	scopes, err := s.Grants.Scopes(r.Context(), user, req.client)
	return scope.Covers(scopes, req.scopes), err
}

// grant redirects the user to the client with a code or a token.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, req *request, user *userv1.User) {
	grant := token.To(req.client, user, req.scopes, req.redirect)
	var location string
	var err error
	if req.responseType == "code" {
		location, err = s.code(r, req, grant)
	} else {
		location, err = s.token(r, req, grant)
	}
	if req.client.Account != nil {
		s.Notice(client.Notice{Account: req.client.Account})
	}
	if err != nil {
		s.refuse(w, r, req.refusal(token.ServerError().Code, token.ServerError().Description, err))
		return
	}
	w.Header().Set("Location", location)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusFound)
}

func (s *Server) code(r *http.Request, req *request, grant token.Grant) (string, error) {
	code, err := s.Issuer.Code(r.Context(), grant, req.state, req.challenge, req.method)
	if err != nil {
		return "", err
	}
	return withQuery(req.redirect, req.state, url.Values{"code": {code}}), nil
}

func (s *Server) token(r *http.Request, req *request, grant token.Grant) (string, error) {
	issued, err := s.Issuer.Access(r.Context(), grant)
	if err != nil {
		return "", err
	}
	values := url.Values{"access_token": {issued.Secret}, "scope": {strings.Join(issued.Scopes, " ")}, "token_type": {"Bearer"}}
	if issued.ExpiresIn > 0 {
		values.Set("expires_in", strconv.FormatInt(issued.ExpiresIn, 10))
	}
	if req.state != "" {
		values.Set("state", req.state)
	}
	return req.redirect + "#" + values.Encode(), nil
}

// withQuery adds values to the query of a redirect URI. It also adds the state, unless the state is
// empty.
func withQuery(address, state string, values url.Values) string {
	if state != "" {
		values.Set("state", state)
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + values.Encode()
}

func (r *request) refusal(code, description string, cause error) *refusal {
	return &refusal{Problem: token.Problem{Code: code, Description: description}, redirect: r.redirect, state: r.state, cause: cause}
}

// refuse redirects to the client with the error. If the redirect URI is unknown or invalid, refuse
// shows the error to the user.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, rejection *refusal) {
	if rejection.cause != nil {
		s.Report(rejection.cause)
	}
	if rejection.redirect != "" {
		values := url.Values{"error": {rejection.Code}, "error_description": {rejection.Description}}
		w.Header().Set("Location", withQuery(rejection.redirect, rejection.state, values))
		w.WriteHeader(http.StatusFound)
		return
	}
	status := http.StatusBadRequest
	if rejection.cause != nil {
		status = http.StatusInternalServerError
	}
	if page.WantsPage(r) {
		s.Pages.Show(w, status, page.Error, page.Problem{Error: rejection.Description, ErrorCode: rejection.Code})
		return
	}
	rejection.Write(w, status)
}
