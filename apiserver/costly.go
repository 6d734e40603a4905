package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/ratelimit"
)

// Limits on a tenant's concurrent costly requests. Priority and fairness counts requests, but a
// list can require a hundred megabytes of memory, and a patch can take seconds.
const (
	maxCostlyLists, maxWaitingLists   = 2, 20
	maxCostlyWrites, maxWaitingWrites = 1, 8
	costlyTimeout                     = 10 * time.Second
)

// costlyValues is the minimum number of values in the body of a costly write. costlyPatchValues is
// the lower minimum for a patch, because the cost of a patch also grows with the size of the
// object.
const costlyValues, costlyPatchValues = 1_000, 200

// Costs limits costly requests. Create it with NewCosts; the zero value is not valid.
type Costs struct {
	tenantOf                              func(*http.Request) string
	lists, writes, lasting, waits, bodies shares
	arrivals                              *arrivals
	commands                              rates
}

// NewCosts returns limits for the tenants that tenantOf identifies. tenantOf returns "" for the
// platform, whose requests are not limited.
func NewCosts(tenantOf func(*http.Request) string) *Costs {
	return &Costs{
		tenantOf: tenantOf,
		lists:    shares{requests: maxCostlyLists, waiting: maxWaitingLists, timeout: costlyTimeout},
		writes:   shares{requests: maxCostlyWrites, waiting: maxWaitingWrites, timeout: costlyTimeout},
		lasting:  shares{requests: maxLongRunning, timeout: costlyTimeout, remedy: "watches and connections at the same time; end some of them"},
		waits:    shares{requests: maxWaits, timeout: costlyTimeout, remedy: "requests that wait for a build or deployment to start; end some of them"},
		bodies:   shares{requests: maxLargeBodies, waiting: maxWaitingBodies, timeout: costlyTimeout},
		arrivals: newArrivals(),
		commands: rates{limiters: ratelimit.Limiters[string]{Rate: execRate, Burst: execBurst}, timeout: execTimeout},
	}
}

// boundLists limits lists that the API server copies in memory for each request. It does not limit
// other lists, because the server encodes them object by object from a cache that all requests
// share. The server also copies lists in indented JSON, so tenants receive lists without
// indentation.
func (c *Costs) boundLists(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest || info.Verb != "list" && info.Verb != "deletecollection" {
			next.ServeHTTP(w, r)
			return
		}
		tenant := c.tenantOf(r)
		if tenant == "" {
			next.ServeHTTP(w, r)
			return
		}
		query := r.URL.Query()
		if info.Verb == "deletecollection" || isCopied(r.Header.Values("Accept"), query) {
			release, err := c.lists.acquire(r.Context(), tenant)
			if err != nil {
				serveError(w, err)
				return
			}
			defer release()
		}
		query.Set("pretty", "false") // otherwise, the User-Agent header determines the format
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, r)
	})
}

// isCopied reports whether the API server must copy a list. The API server encodes tables and YAML
// as a whole, and reads lists of past resource versions from etcd.
func isCopied(accept []string, query url.Values) bool {
	for _, media := range accept {
		if media = strings.ToLower(media); strings.Contains(media, "as=") || strings.Contains(media, "yaml") {
			return true
		}
	}
	return query.Get("continue") != "" || query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
}

// serveError sends an API error as JSON.
func serveError(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	response := status.Status()
	response.Kind, response.APIVersion = "Status", "v1"
	if response.Details != nil && response.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(response.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(response.Code))
	_ = json.NewEncoder(w).Encode(response)
}

// maxPatchValues is the maximum number of values in a tenant's strategic merge patch or JSON patch.
// Upstream compares each element of such a patch with each element of the object's list, which
// takes 7 s for 6,000 elements.
const maxPatchValues = 4_000

// isQuadratic reports whether the cost of a body is proportional to the product of the body's size
// and the object's size.
func isQuadratic(media string) bool {
	return media == "application/strategic-merge-patch+json" || media == "application/json-patch+json"
}

func errPatchTooLarge() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patch has more than %d values; "+
		"divide it, or send a JSON merge patch or a server-side apply", maxPatchValues))
}
