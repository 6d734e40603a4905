package apiserver

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	filters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
)

// Recorder applies the API server's authentication and audit policy to the requests of another
// server in this process. If the Recorder is nil, or before Use is called, requests are served
// without authentication and audit.
type Recorder struct {
	config atomic.Pointer[genericserver.Config]
}

// Use sets the API server's configuration.
func (r *Recorder) Use(config *genericserver.Config) { r.config.Store(config) }

// Recorded describes a request to be recorded in the audit log.
type Recorded struct {
	// Token is the user's bearer token, or empty for system:anonymous. The audit log does not
	// contain the token.
	Token string
	// URL is the URL in the audit log.
	URL *url.URL
	// Info describes the request. The audit policy uses it to select a rule.
	Info *request.RequestInfo
}

// original is the context key for the original request, which the filters do not see.
type original struct{}

// Serve serves a request and records the request's user and result. It calls next if recorded.Token
// is valid or empty, and rejected if the token is invalid.
func (r *Recorder) Serve(w http.ResponseWriter, req *http.Request, recorded Recorded, next, rejected http.Handler) {
	var config *genericserver.Config
	if r != nil {
		config = r.config.Load()
	}
	if config == nil {
		next.ServeHTTP(w, req)
		return
	}
	auth := config.Authentication.Authenticator
	if recorded.Token == "" {
		auth = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
		})
	}
	chain := filters.WithAudit(unwrap(next), config.AuditBackend, config.AuditPolicyRuleEvaluator, nil)
	failed := filters.WithFailedAuthenticationAudit(unwrap(rejected), config.AuditBackend, config.AuditPolicyRuleEvaluator)
	chain = filters.WithAuthentication(chain, auth, failed, config.Authentication.APIAudiences, nil)
	filters.WithAuditInit(chain).ServeHTTP(w, recorded.redact(req))
}

// redact returns the request that the filters see. It contains no credentials except the token, and
// no header that contains a user name.
func (r Recorded) redact(req *http.Request) *http.Request {
	ctx := context.WithValue(req.Context(), original{}, req)
	redacted := req.WithContext(request.WithRequestInfo(ctx, r.Info))
	redacted.TLS, redacted.Body, redacted.Header = nil, http.NoBody, http.Header{}
	for _, name := range []string{"Accept", "User-Agent"} {
		if values := req.Header.Values(name); len(values) > 0 {
			redacted.Header[name] = values
		}
	}
	if r.Token != "" {
		redacted.Header.Set("Authorization", "Bearer "+r.Token)
	}
	redacted.URL, redacted.RequestURI = r.URL, r.URL.RequestURI()
	return redacted
}

// unwrap returns a handler that calls next with the original request.
func unwrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		req, ok := request.Context().Value(original{}).(*http.Request)
		if !ok {
			http.Error(w, "The request cannot be read.", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, req)
	})
}
