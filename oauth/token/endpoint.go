package token

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"

	"github.com/slipway-platform/slipway/oauth/client"
)

// Endpoint serves /oauth/token, where a client exchanges a code for an access token (RFC 6749,
// section 4.1.3).
type Endpoint struct {
	Clients *client.Registry
	Issuer  *Issuer
	// Report is called with errors for the administrator.
	Report func(error)
}

// Problem is an error response as defined in RFC 6749.
type Problem struct {
	// Code is an error code from section 4.1.2.1 or 5.2, such as invalid_request.
	Code string `json:"error"`
	// Description is a message for developers of the client.
	Description string `json:"error_description,omitempty"`
}

// ServerError returns the problem for internal errors. Its description is the same as in OpenShift.
func ServerError() *Problem {
	return &Problem{"server_error", "The authorization server encountered an unexpected condition that prevented it from fulfilling the request."}
}

// success is the body of a successful response.
type success struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in,omitempty"`
	Scope       string `json:"scope,omitempty"`
	TokenType   string `json:"token_type"`
}

// ServeHTTP exchanges a code for a token.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		write(w, http.StatusMethodNotAllowed, &Problem{"invalid_request", "use POST"})
		return
	}
	// Read the parameters only from the form, not from the URL, because logs contain URLs.
	if err := r.ParseForm(); err != nil || repeated(r.PostForm) {
		write(w, http.StatusBadRequest, &Problem{"invalid_request", "the form cannot be parsed, or contains a parameter twice"})
		return
	}
	if problem := checkGrantType(r.PostForm.Get("grant_type")); problem != nil {
		write(w, http.StatusBadRequest, problem)
		return
	}
	c, problem := e.authenticate(r)
	if problem != nil {
		status := http.StatusBadRequest
		if _, _, basic := r.BasicAuth(); basic && problem.Code == "invalid_client" {
			w.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
			status = http.StatusUnauthorized
		}
		write(w, status, problem)
		return
	}
	grant, problem := e.exchange(r, c)
	if problem != nil {
		write(w, http.StatusBadRequest, problem)
		return
	}
	write(w, http.StatusOK, success{grant.Secret, grant.ExpiresIn, strings.Join(grant.Scopes, " "), "Bearer"})
}

func checkGrantType(grantType string) *Problem {
	switch grantType {
	case "authorization_code":
		return nil
	case "":
		return &Problem{"invalid_request", "grant_type is missing"}
	}
	return &Problem{"unsupported_grant_type", "grant_type must be authorization_code"}
}

// invalidGrant returns the problem for a code that cannot be exchanged.
func invalidGrant() *Problem {
	return &Problem{"invalid_grant", "the code is not valid: it was used, has expired, or is for another client, redirect_uri or code_verifier"}
}

func (e *Endpoint) exchange(r *http.Request, c *client.Client) (Issued, *Problem) {
	grant, err := e.Issuer.Redeem(r.Context(), c, r.PostForm.Get("code"), func(code *oauthv1.OAuthAuthorizeToken) bool {
		redirect := r.PostForm.Get("redirect_uri")
		same := redirect == code.RedirectURI || redirect == "" && len(c.RedirectURIs) == 1 && c.RedirectURIs[0] == code.RedirectURI
		return same && Verifies(code.CodeChallenge, code.CodeChallengeMethod, r.PostForm.Get("code_verifier"))
	})
	if errors.Is(err, ErrInvalidCode) {
		return Issued{}, invalidGrant()
	}
	issued := Issued{}
	if err == nil {
		issued, err = e.Issuer.Access(r.Context(), grant)
	}
	if err != nil {
		e.Report(err)
		return Issued{}, ServerError()
	}
	return issued, nil
}

// authenticate identifies the client that sent a request and checks the client's secret. The secret
// is in the Authorization header or in the form.
//
// The response does not reveal which clients exist: it is the same for an unknown client and for a
// wrong secret. For a request without a secret, it is the same for every client that requires a
// secret.
func (e *Endpoint) authenticate(r *http.Request) (*client.Client, *Problem) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	candidates := slices.Compact([]string{secret, unescaped(secret, basic)})
	for _, candidate := range candidates {
		c, err := e.Clients.Authenticate(r.Context(), unescaped(id, basic), candidate)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, client.ErrUnknown) {
			e.Report(err)
			return nil, ServerError()
		}
	}
	if secret == "" && id != "" {
		return nil, invalidGrant()
	}
	return nil, &Problem{"invalid_client", "the client or its secret is unknown"}
}

// unescaped decodes a value from the Authorization header. RFC 6749, section 2.3.1, requires these
// values to be encoded, but many clients do not encode them. Form values, and values that cannot be
// decoded, are returned unchanged.
func unescaped(text string, basic bool) string {
	if decoded, err := url.QueryUnescape(text); basic && err == nil {
		return decoded
	}
	return text
}

// repeated reports whether a parameter occurs more than once, which RFC 6749, section 3.2, forbids.
func repeated(form url.Values) bool {
	for _, values := range form {
		if len(values) > 1 {
			return true
		}
	}
	return false
}

// write sends body as JSON.
func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Write sends the problem to a client.
func (p *Problem) Write(w http.ResponseWriter, status int) { write(w, status, p) }
