package osbserver

import (
	"net/http"
	"strings"
)

// RequireCredentials returns a filter that responds with 401 to requests without credentials for
// the paths below root, as the Open Service Broker API requires. Without the filter, the API server
// would respond with 403, because it authorizes such requests as requests from an anonymous user.
func RequireCredentials(root string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			anonymous := r.Header.Get("Authorization") == "" && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0)
			if !anonymous || !strings.HasPrefix(r.URL.Path, root) {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="broker"`)
			respond(w, Response{}, Refuse(http.StatusUnauthorized, "the request has no credentials; send the token of a service account"))
		})
	}
}
