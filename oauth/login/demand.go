package login

import (
	"fmt"
	"net/http"
	"net/url"
)

// CSRFHeader is a header that a request must contain for the server to send a basic authentication
// challenge. A page on another site cannot make a browser send this header. Therefore, the page
// cannot make the browser prompt for a password and store it.
const CSRFHeader = "X-CSRF-Token"

// Demand responds to an unauthenticated request. If challenges is true, the client is a program,
// and Demand sends a challenge. Otherwise, the client is a browser, and Demand redirects it to a
// login page.
func (s *Server) Demand(w http.ResponseWriter, r *http.Request, challenges bool) {
	if challenges {
		s.challenge(w, r)
		return
	}
	s.choose(w, r)
}

// challenge responds to a program, usually with status 401. The response contains instructions for
// the user.
func (s *Server) challenge(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	var elsewhere string
	for _, provider := range s.Providers {
		if !provider.Challenge {
			continue
		}
		switch {
		case provider.Password != nil && r.Header.Get(CSRFHeader) != "":
			header.Set("WWW-Authenticate", `Basic realm="openshift"`)
		case provider.Password != nil:
			header.Set("Warning", fmt.Sprintf(`199 Slipway "A non-empty %s header is required to receive basic-auth challenges"`, CSRFHeader))
		case provider.Request != nil && elsewhere == "":
			elsewhere = provider.Request.ChallengeURL(s.public(r))
		}
	}
	if elsewhere != "" && header.Get("WWW-Authenticate") == "" {
		header.Set("Location", elsewhere)
		w.WriteHeader(http.StatusFound)
		return
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	if header.Get("Warning") != "" {
		fmt.Fprintf(w, "A non-empty %s header is required to receive basic-auth challenges\n", CSRFHeader)
	}
	if header.Get("WWW-Authenticate") == "" {
		fmt.Fprintf(w, "You must obtain an API token by visiting %s/oauth/token/request\n", s.PublicURL)
	}
}

// public returns a request's URL as browsers outside the cluster use it.
func (s *Server) public(r *http.Request) *url.URL {
	address, err := url.Parse(s.PublicURL + present(r))
	if err != nil {
		return &url.URL{}
	}
	return address
}

// choice is one provider on the provider selection page.
type choice struct{ Name, URL string }

// choose redirects a browser to the login page if exactly one provider has a login page, unless
// AlwaysChoose is set. If several providers have a login page, it shows the provider selection
// page.
func (s *Server) choose(w http.ResponseWriter, r *http.Request) {
	var choices []choice
	for _, provider := range s.Providers {
		if provider.Login {
			choices = append(choices, choice{provider.Name, s.entrance(r, provider)})
		}
	}
	switch {
	case len(choices) == 0:
		s.fail(w, r, http.StatusUnauthorized, "none", nil)
	case len(choices) == 1 && !s.AlwaysChoose:
		http.Redirect(w, r, choices[0].URL, http.StatusFound)
	default:
		s.showProviders(w, choices)
	}
}

// entrance returns the URL at which a login with the provider begins.
func (s *Server) entrance(r *http.Request, provider Provider) string {
	if provider.Request != nil {
		return provider.Request.LoginURL(s.public(r))
	}
	return s.formPath(provider) + "?" + url.Values{"then": {present(r)}}.Encode()
}

// formPath returns the path of a provider's login form: /login, or /login/<name> if several
// providers have forms.
func (s *Server) formPath(of Provider) string {
	forms := 0
	for _, provider := range s.Providers {
		if provider.Login && provider.Request == nil {
			forms++
		}
	}
	if forms == 1 {
		return "/login"
	}
	return "/login/" + url.PathEscape(of.Name)
}
