package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// maxLongRunning is the maximum number of a tenant's long-running requests: watches, and
// connections to pods and services. Each of them requires about 40 KiB. Priority and fairness does
// not limit these requests: it counts a watch only while it starts, and never counts connections.
const maxLongRunning = 2_000

// maxWatchQuery is the maximum length of the query in a tenant's watch request, in bytes. The limit
// is necessary because a watch keeps its selectors in memory, where they require 20 times their
// length.
const maxWatchQuery = 4 << 10

// maxWaits is the maximum number of a tenant's requests that wait for a build or deployment to
// start. It is lower than maxLongRunning, because each of these requests requires a watch and a
// cache in addition to the connection.
const maxWaits = 100

// lasting lists the subresources whose requests can last as long as the client keeps them open.
var lasting = []string{"attach", "exec", "instantiatebinary", "log", "portforward", "proxy"}

func isWatch(info *request.RequestInfo) bool { return info.Verb == "watch" || info.Verb == "watchlist" }

// boundLongRunning limits long-running requests.
func (c *Costs) boundLongRunning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || !isWatch(info) && !slices.Contains(lasting, info.Subresource) {
			next.ServeHTTP(w, r)
			return
		}
		tenant := c.tenantOf(r)
		if tenant == "" {
			next.ServeHTTP(w, r)
			return
		}
		if isWatch(info) && len(r.URL.RawQuery) > maxWatchQuery {
			serveError(w, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the query of a watch has more than %d bytes; use shorter selectors", maxWatchQuery)))
			return
		}
		release, err := c.lasting.acquire(r.Context(), tenant)
		if err != nil {
			serveError(w, err)
			return
		}
		defer release()
		if info.Subresource == "exec" {
			if err := c.commands.wait(r.Context(), tenant); err != nil {
				serveError(w, err)
				return
			}
		}
		acquire := func() (func(), error) { return c.waits.acquire(r.Context(), tenant) }
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), waitKey{}, acquire)))
	})
}

// waitKey is the context key of the function that counts a waiting request.
type waitKey struct{}

// CountWait counts a request that waits for a build or deployment to start. The caller must call
// release when the wait is over. CountWait returns a too-many-requests error if too many requests
// of the tenant are waiting. It does not count requests of the platform.
func CountWait(ctx context.Context) (release func(), err error) {
	acquire, isTenant := ctx.Value(waitKey{}).(func() (func(), error))
	if !isTenant {
		return func() {}, nil
	}
	return acquire()
}
