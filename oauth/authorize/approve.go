package authorize

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/token"
)

// Paths of this package's two pages.
const (
	Path        = "/oauth/authorize"
	ApprovePath = "/oauth/approve"
)

// approval contains the data for the page on which a user grants scopes.
type approval struct {
	Action, Then, CSRF     string
	Client, User, Redirect string
	ServiceAccount         bool
	Scopes                 []requestedScope
	Granted                []string
	Error                  string
}

// requestedScope describes a scope that a client requests.
type requestedScope struct{ Name, Description, Warning string }

// ServeApprove shows the page on which a user grants scopes, and handles its form. It reads the
// client and the scopes from the client's original request, which the form repeats. Only the user's
// selection of scopes comes from the form.
func (s *Server) ServeApprove(w http.ResponseWriter, r *http.Request) {
	then := r.FormValue("then")
	values, ok := parameterValues(then)
	if !ok {
		s.refuse(w, r, &refusal{Problem: token.Problem{Code: "invalid_request", Description: "the page does not belong to a client's request"}})
		return
	}
	user, err := s.Login.Authenticate(r)
	if err != nil || user == nil {
		http.Redirect(w, r, Path+"?"+values.Encode(), http.StatusFound) // start the login again
		return
	}
	request, refusal := s.read(r.Context(), values)
	if refusal != nil {
		s.refuse(w, r, refusal)
		return
	}
	data := approval{
		Action: ApprovePath, Then: then, Client: request.client.ID, User: user.Name, Redirect: request.redirect, ServiceAccount: request.client.Account != nil,
		Scopes: requestedScopes(request.scopes),
	}
	if data.Granted, err = s.Grants.Scopes(r.Context(), user, request.client); err != nil {
		s.refuse(w, r, request.refusal(token.ServerError().Code, token.ServerError().Description, err))
		return
	}
	if r.Method != http.MethodPost {
		data.CSRF = session.CSRF(w, r)
		s.Pages.Show(w, http.StatusOK, page.Grant, data)
		return
	}
	selection := slices.DeleteFunc(slices.Clone(request.scopes), func(name string) bool { return !slices.Contains(r.PostForm["scope"], name) })
	switch {
	case !session.CheckCSRF(r, r.PostFormValue("csrf")):
		data.CSRF, data.Error = session.CSRF(w, r), "Could not check CSRF token. Please try again."
		s.Pages.Show(w, http.StatusForbidden, page.Grant, data)
	case r.PostFormValue("approve") == "" || len(selection) == 0:
		s.refuse(w, r, request.refusal("access_denied", "the user denied access", nil))
	default:
		if err := s.Grants.Add(r.Context(), user, request.client, selection); err != nil {
			s.refuse(w, r, request.refusal(token.ServerError().Code, token.ServerError().Description, err))
			return
		}
		values.Set("scope", strings.Join(selection, " "))
		http.Redirect(w, r, Path+"?"+values.Encode(), http.StatusFound)
	}
}

// parameterValues parses then, the client request that led to the page, and returns its parameters.
// It returns false if then is not a valid request.
func parameterValues(then string) (url.Values, bool) {
	query, ok := strings.CutPrefix(then, Path+"?")
	if !ok {
		return nil, false
	}
	values, err := url.ParseQuery(query)
	return values, err == nil && repeated(values) == ""
}

// requestedScopes returns descriptions of the scopes to show to the user.
func requestedScopes(scopes []string) (all []requestedScope) {
	for _, name := range scopes {
		request := requestedScope{Name: name}
		switch name {
		case scope.Full:
			request.Description = "Everything that you may do, in all your projects"
			request.Warning = "Includes your secrets, and permissions that you can give to others."
		case scope.Info:
			request.Description = "Who you are: your name and groups"
		case scope.CheckAccess:
			request.Description = "Your permissions, without the right to use them"
		case scope.ListProjects:
			request.Description = "The list of your projects"
		case scope.ListScopedProjects:
			request.Description = "The list of the projects to which the other permissions apply"
		default:
			request = roleScope(name)
		}
		all = append(all, request)
	}
	return all
}

func roleScope(text string) requestedScope {
	role, err := scope.ParseRole(text)
	if err != nil {
		return requestedScope{Name: text}
	}
	request := requestedScope{Name: text, Description: "What the role " + role.Name + " allows in the project " + role.Namespace}
	if role.Namespace == scope.AllNamespaces {
		request.Description = "What the role " + role.Name + " allows in all your projects"
	}
	if role.Escalating {
		request.Warning = "Includes secrets, and permissions that can be given to others."
	}
	return request
}
