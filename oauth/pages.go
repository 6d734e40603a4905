package oauth

import (
	"errors"
	"net/http"
	"net/url"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/oauth/authorize"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/oauth/page"
	"github.com/slipway-platform/slipway/oauth/session"
	"github.com/slipway-platform/slipway/oauth/token"
)

// TokenPath is the endpoint where clients exchange codes for tokens.
const TokenPath = "/oauth/token"

// Paths of the pages on which users obtain a token manually.
const (
	requestPath  = TokenPath + "/request"
	displayPath  = TokenPath + "/display"
	implicitPath = TokenPath + "/implicit"
)

// tokenPages serves the pages on which users obtain a token manually.
type tokenPages struct {
	publicURL string
	clients   *client.Registry
	issuer    *token.Issuer
	pages     *page.Pages
	report    func(error)
}

// serveRequest starts a flow in which the browser obtains a code for the display page.
func (t *tokenPages) serveRequest(w http.ResponseWriter, r *http.Request) {
	query := url.Values{"client_id": {client.Browser}, "redirect_uri": {t.publicURL + displayPath}, "response_type": {"code"}, "state": {session.State(w, r)}}
	http.Redirect(w, r, t.publicURL+authorize.Path+"?"+query.Encode(), http.StatusFound)
}

// display contains the data for the request page and the token page.
type display struct {
	Error, Again       string
	Action, Code, CSRF string
	AccessToken        string
	PublicURL, Logout  string
}

// serveDisplay shows a button, and shows the token only after the user presses the button, so that
// opening the URL does not show a token to bystanders.
func (t *tokenPages) serveDisplay(w http.ResponseWriter, r *http.Request) {
	data := display{Again: t.publicURL + requestPath, PublicURL: t.publicURL, Logout: login.LogoutPath, Action: displayPath}
	if r.Method != http.MethodPost {
		query := r.URL.Query()
		data.Code, data.CSRF = query.Get("code"), session.CSRF(w, r)
		switch {
		case !session.CheckState(r, query.Get("state")):
			data.Error = "This browser didn't request the token."
		case query.Get("error") != "":
			data.Error = "The token was not granted: " + query.Get("error_description")
		case data.Code == "":
			data.Error = "The URL contains no code."
		}
		t.pages.Show(w, http.StatusOK, page.Request, data)
		return
	}
	if !session.CheckCSRF(r, r.PostFormValue("csrf")) {
		data.Error = "Could not check CSRF token. Please try again."
		t.pages.Show(w, http.StatusForbidden, page.Request, data)
		return
	}
	grant, err := t.exchange(r)
	switch {
	case errors.Is(err, token.ErrInvalidCode):
		data.Error = "The code was used before, has expired or was requested by another browser."
		t.pages.Show(w, http.StatusBadRequest, page.Request, data)
	case err != nil:
		t.report(err)
		data.Error = token.ServerError().Description
		t.pages.Show(w, http.StatusInternalServerError, page.Request, data)
	default:
		data.AccessToken, data.CSRF = grant.Secret, session.CSRF(w, r)
		t.pages.Show(w, http.StatusOK, page.Token, data)
	}
}

func (t *tokenPages) exchange(r *http.Request) (token.Issued, error) {
	browser, err := t.clients.Find(r.Context(), client.Browser)
	if err != nil {
		return token.Issued{}, err
	}
	redirect := t.publicURL + displayPath
	grant, err := t.issuer.Redeem(r.Context(), browser, r.PostFormValue("code"), func(code *oauthv1.OAuthAuthorizeToken) bool {
		return code.RedirectURI == redirect && code.CodeChallenge == "" && session.CheckState(r, code.State)
	})
	if err != nil {
		return token.Issued{}, err
	}
	return t.issuer.Access(r.Context(), grant)
}

// serveImplicit serves the redirect target for programs that use the implicit flow. The program
// reads the token from the redirect; a browser shows only a message.
func (t *tokenPages) serveImplicit(w http.ResponseWriter, r *http.Request) {
	t.pages.Show(w, http.StatusOK, page.Implicit, display{Again: t.publicURL + requestPath})
}
