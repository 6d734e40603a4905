package apiserver

import (
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// maxLongRunning is the maximum number of a tenant's long-running requests: watches, and
// connections to pods and services. Each of them requires about 40 KiB. Priority and fairness
// counts a watch only while it starts, and never counts connections.
const maxLongRunning = 2_000

// lasting lists the subresources whose requests can last as long as the client keeps them open.
var lasting = []string{"attach", "exec", "log", "portforward", "proxy"}

// boundLongRunning limits long-running requests.
func (c *Costs) boundLongRunning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "watch" && info.Verb != "watchlist" && !slices.Contains(lasting, info.Subresource) {
			next.ServeHTTP(w, r)
			return
		}
		tenant := c.tenantOf(r)
		if tenant == "" {
			next.ServeHTTP(w, r)
			return
		}
		release, err := c.lasting.acquire(r.Context(), tenant)
		if err != nil {
			serveError(w, err)
			return
		}
		defer release()
		next.ServeHTTP(w, r)
	})
}
