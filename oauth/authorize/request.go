package authorize

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/token"
)

// request is a valid client request.
type request struct {
	client            *client.Client
	redirect          string
	responseType      string
	scopes            []string
	state             string
	challenge, method string
}

// refusal describes a rejected request. If the redirect URI is valid, the server sends the Problem
// to the client.
type refusal struct {
	token.Problem
	redirect, state string
	cause           error // error for the administrator
}

// parameters returns the names of the parameters that must occur at most once in a request.
func parameters() []string {
	return []string{"client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"}
}

// repeated returns the name of a parameter that occurs more than once, or "".
func repeated(form url.Values) string {
	for _, name := range parameters() {
		if len(form[name]) > 1 {
			return name
		}
	}
	return ""
}

// read validates the parameters of an authenticated user's request.
func (s *Server) read(ctx context.Context, form url.Values) (*request, *refusal) {
	for _, name := range []string{"redirect_uri", "state", "scope"} {
		if len(form.Get(name)) > scope.MaxParameter {
			return nil, &refusal{Problem: token.Problem{Code: "invalid_request", Description: fmt.Sprintf("%s can have at most %d bytes", name, scope.MaxParameter)}}
		}
	}
	c, err := s.Clients.Find(ctx, form.Get("client_id"))
	var misconfigured *client.Misconfigured
	if errors.As(err, &misconfigured) && misconfigured.Notice.Account != nil {
		s.Notice(misconfigured.Notice)
	}
	switch {
	case errors.Is(err, client.ErrUnknown):
		return nil, &refusal{Problem: token.Problem{Code: "unauthorized_client", Description: "client_id is unknown"}}
	case misconfigured != nil:
		return nil, &refusal{Problem: *token.ServerError()}
	case err != nil:
		return nil, &refusal{Problem: *token.ServerError(), cause: err}
	}
	redirect, err := c.Redirect(form.Get("redirect_uri"))
	if err != nil {
		return nil, &refusal{Problem: token.Problem{Code: "invalid_request", Description: err.Error()}}
	}
	r := &request{client: c, redirect: redirect, responseType: form.Get("response_type"), state: form.Get("state")}
	if problem := r.complete(form); problem != nil {
		return nil, &refusal{Problem: *problem, redirect: redirect, state: r.state}
	}
	return r, nil
}

// complete sets the request's remaining parameters. It validates the parameters whose errors are
// sent to the client.
func (r *request) complete(form url.Values) *token.Problem {
	if !slices.Contains([]string{"code", "token"}, r.responseType) {
		return &token.Problem{Code: "unsupported_response_type", Description: "response_type must be code or token"}
	}
	r.scopes = scope.Split(form.Get("scope"))
	if len(r.scopes) == 0 {
		r.scopes = []string{scope.Full}
	}
	if err := scope.Permit(r.client.ScopeRestrictions, r.scopes); err != nil {
		return &token.Problem{Code: "invalid_scope", Description: err.Error()}
	}
	method, err := token.CheckChallenge(form.Get("code_challenge"), form.Get("code_challenge_method"))
	if err != nil {
		return &token.Problem{Code: "invalid_request", Description: err.Error()}
	}
	if r.responseType == "code" {
		if err := token.CheckMethod(r.client, method); err != nil {
			return &token.Problem{Code: "invalid_request", Description: err.Error()}
		}
	}
	r.challenge, r.method = form.Get("code_challenge"), method
	return nil
}
