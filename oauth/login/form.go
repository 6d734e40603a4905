package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/internal/clientaddr"
	"github.com/slipway-platform/slipway/internal/redirect"
	"github.com/slipway-platform/slipway/internal/throttle"
	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/mapping"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
)

// Form contains the data for the login page. Its fields have the same names as in OpenShift 3's
// templates.
type Form struct {
	ProviderName     string
	Action           string
	Error, ErrorCode string
	Names            Fields
	Values           Fields
}

// Fields contains either the names or the values of the form's fields.
type Fields struct{ Then, CSRF, Username, Password string }

// message returns the message to show for an error code. The code can come from the URL's query, so
// it can be arbitrary.
func message(code string) string {
	switch code {
	case "":
		return ""
	case "user_required":
		return "Login is required. Please try again."
	case "token_expired":
		return "Could not check CSRF token. Please try again."
	case "access_denied":
		return "Invalid login or password. Please try again."
	case "too_many":
		return "Too many wrong passwords. Please wait half a minute and try again."
	case "mapping_claim_error":
		return "Could not create user: its name belongs to another identity. Ask your administrator."
	case "mapping_lookup_error":
		return "Could not find user: your identity is not mapped to a user. Ask your administrator."
	case "name_error":
		return "Could not create user: the name cannot be used. Ask your administrator."
	case "none":
		return "No identity provider supports a login on this page. Ask your administrator."
	}
	return "An authentication error occurred."
}

// codeOf returns the error code for a login error.
func codeOf(err error) string {
	switch {
	case errors.Is(err, idp.ErrRefused):
		return "access_denied"
	case errors.Is(err, throttle.ErrThrottled):
		return "too_many"
	case errors.Is(err, mapping.ErrClaim):
		return "mapping_claim_error"
	case errors.Is(err, mapping.ErrLookup):
		return "mapping_lookup_error"
	case apierrors.IsInvalid(err):
		return "name_error"
	}
	return "authentication_error"
}

// Proven reports whether an error from Authenticate means that the credentials were correct but the
// user cannot log in for another reason.
func Proven(err error) bool {
	return errors.Is(err, mapping.ErrClaim) || errors.Is(err, mapping.ErrLookup) || apierrors.IsInvalid(err)
}

// Explain returns the message to show for an error from Authenticate. The message contains no
// internal details.
func Explain(err error) string { return message(codeOf(err)) }

// find returns the provider whose form has the given path. For /login, this is the first provider.
func (s *Server) find(path string) (Provider, bool) {
	name := strings.TrimPrefix(strings.TrimPrefix(path, "/login"), "/")
	for _, provider := range s.Providers {
		if provider.Login && provider.Request == nil && (name == "" || name == provider.Name) {
			return provider, true
		}
	}
	return Provider{}, false
}

// ServeLogin shows the login page of a provider and handles its form.
func (s *Server) ServeLogin(w http.ResponseWriter, r *http.Request) {
	provider, ok := s.find(r.URL.Path)
	switch {
	case !ok:
		s.fail(w, r, http.StatusNotFound, "none", nil)
	case r.Method == http.MethodGet && provider.Redirect != nil:
		state := encodeState(session.State(w, r), redirect.Local(r.URL.Query().Get("then"), "/"))
		http.Redirect(w, r, provider.Redirect.StartURL(s.callback(provider), state), http.StatusFound)
	case r.Method == http.MethodGet:
		s.showForm(w, r, provider)
	case r.Method == http.MethodPost && provider.Password != nil:
		s.takeForm(w, r, provider)
	default:
		http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
	}
}

func (s *Server) showForm(w http.ResponseWriter, r *http.Request, provider Provider) {
	query := r.URL.Query()
	form := Form{
		Action: s.formPath(provider),
		Names:  Fields{Then: "then", CSRF: "csrf", Username: "username", Password: "password"},
		Values: Fields{Then: redirect.Local(query.Get("then"), "/"), CSRF: session.CSRF(w, r), Username: query.Get("username")},
	}
	if len(s.Providers) > 1 {
		form.ProviderName = provider.Name
	}
	form.ErrorCode = query.Get("reason")
	form.Error = message(form.ErrorCode)
	s.Pages.Show(w, http.StatusOK, page.Login, form)
}

// takeForm handles the submitted form of a password login. It redirects the browser to the page
// that the user wanted to open, or back to the form if the login fails.
func (s *Server) takeForm(w http.ResponseWriter, r *http.Request, provider Provider) {
	then, name := redirect.Local(r.PostFormValue("then"), "/"), r.PostFormValue("username")
	showAgain := func(reason string) {
		values := url.Values{"then": {then}, "reason": {reason}}
		if len(name) <= maxShown {
			values.Set("username", name)
		}
		http.Redirect(w, r, s.formPath(provider)+"?"+values.Encode(), http.StatusFound)
	}
	switch {
	case !session.CheckCSRF(r, r.PostFormValue("csrf")):
		showAgain("token_expired")
		return
	case name == "":
		showAgain("user_required")
		return
	}
	end, err := s.Throttle.Try(name, clientaddr.Network(r.RemoteAddr))
	if err != nil {
		showAgain(codeOf(err))
		return
	}
	user, err := func() (user *userv1.User, err error) {
		defer func() { end(errors.Is(err, idp.ErrRefused), user != nil) }() // even if the provider panics
		return s.check(r.Context(), provider, name, r.PostFormValue("password"))
	}()
	s.Metrics.form(err == nil)
	note(r, name, user != nil, err)
	if err != nil {
		s.report(err)
		showAgain(codeOf(err))
		return
	}
	if err := s.startSession(w, user); err != nil {
		s.fail(w, r, http.StatusInternalServerError, "session_error", err)
		return
	}
	http.Redirect(w, r, then, http.StatusFound)
}

// maxShown is the maximum length of a user name in the form and in audit events, in bytes. A longer
// name is omitted from the form and truncated in audit events.
const maxShown = 256

func (s *Server) showProviders(w http.ResponseWriter, choices []choice) {
	s.Pages.Show(w, http.StatusOK, page.Providers, struct{ Providers []choice }{choices})
}

// fail reports err to the administrator, unless it is nil, and shows the message for an error code
// to the user.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, code string, err error) {
	s.report(err)
	s.Pages.Fail(w, r, status, page.Problem{Error: message(code), ErrorCode: code})
}

// report reports an error to the administrator, unless the provider rejected the login.
func (s *Server) report(err error) {
	if err != nil && !errors.Is(err, idp.ErrRefused) {
		s.Report(err)
	}
}
