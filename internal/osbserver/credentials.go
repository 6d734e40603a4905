package osbserver

import (
	"net/http"
	"strings"
)

// RequireCredentials returns a filter that rejects requests without credentials for the paths below
// root with 401, as the Open Service Broker API requires. The API server would reject them with
// 403, because it authorizes them as requests of an anonymous user.
func RequireCredentials(root string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			anonymous := r.Header.Get("Authorization") == "" && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0)
			if !anonymous || !strings.HasPrefix(r.URL.Path, root) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="broker"`)
			respond(w, Response{}, Refuse(http.StatusUnauthorized, "the request has no credentials: send the token of a service account"))
		})
	}
}
