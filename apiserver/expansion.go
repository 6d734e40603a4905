package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
	"github.com/slipway-platform/slipway/internal/yamllimit"
)

// Limits on the number of values in a request body. Upstream's limit of 3 MiB for a body is not
// sufficient. An empty element takes two bytes in the body. After it has been decoded, defaulted,
// converted and validated, for example as a pod's container, it takes thousands of bytes.
const (
	// maxValues is the limit for namespaced objects of Kubernetes and OpenShift. The largest real
	// objects have a few thousand values.
	maxValues = 20_000
	// maxLooseValues is the limit for cluster-scoped objects, such as groups with many users, and
	// for custom resources, whose values require little memory after decoding.
	maxLooseValues = 200_000
)

// Bound limits the cost of requests: long-running requests, lists that require a lot of memory, and
// bodies. It rejects requests whose body has so many values that decoding would require far more
// memory than the body. It must run after authentication. Bodies that are passed on without
// decoding, and members of system:masters, are exempt.
func (c *Costs) Bound(next http.Handler) http.Handler {
	return c.boundLongRunning(c.boundLists(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn := &turn{costs: c, ctx: r.Context()}
		if check := c.bodyCheck(r, turn); check != nil {
			defer turn.end()
			r = r.Clone(r.Context())
			r.Body = &boundedBody{ReadCloser: r.Body, check: check}
		}
		next.ServeHTTP(w, r)
	})))
}

// turn is a request's permission to be processed. It is required because a tenant can have only a
// few costly requests at a time.
type turn struct {
	costs   *Costs
	ctx     context.Context // the request's context
	tenant  string
	least   int // the minimum number of values in a costly request
	mu      sync.Mutex
	release func()
	ended   bool
}

// wait waits until a request can be processed. values is the number of values in its complete body.
func (t *turn) wait(values int) error {
	if t.tenant == "" || values < t.least {
		return nil
	}
	release, err := t.costs.writes.acquire(t.ctx, t.tenant)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.release != nil || t.ended { // upstream can read the body after the request has ended
		release()
		return nil
	}
	t.release = release
	return nil
}

// end marks the request as finished.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.release != nil {
		t.release()
	}
}

// bodyCheck returns a function that is called with the pieces of a request's body, and with nil at
// the end of the body. The function returns an error if the body would be too large after decoding.
// At the end of the body of a costly request, it waits for the turn. bodyCheck returns nil if the
// request has no limit.
func (c *Costs) bodyCheck(r *http.Request, turn *turn) func(piece []byte) error {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest || r.Body == nil || r.Body == http.NoBody || streamed(info.Subresource) {
		return nil
	}
	if u, ok := request.UserFrom(r.Context()); ok && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	limit := maxValues
	if info.Namespace == "" || !builtIn(info.APIGroup) {
		limit = maxLooseValues
	}
	// Ignore the error, because upstream treats an invalid type as JSON or rejects it.
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	turn.tenant, turn.least = c.tenantOf(r), costlyValues
	switch {
	case strings.HasSuffix(media, "protobuf"):
		return turn.atMost(limit, (&messages{}).count)
	case strings.HasSuffix(media, "yaml"):
		return (&document{limit: limit, turn: turn}).check
	case turn.tenant != "" && isQuadratic(media):
		turn.least = costlyPatchValues
		check := turn.atMost(min(limit, maxPatchValues), (&jsonBody{}).count)
		return func(piece []byte) error {
			err := check(piece)
			if apierrors.IsRequestEntityTooLargeError(err) {
				return errPatchTooLarge()
			}
			return err
		}
	}
	return turn.atMost(limit, (&jsonBody{}).count)
}

// counts contains the limited quantities in a body: values, and field paths in
// metadata.managedFields.
type counts struct{ values, paths int }

// jsonBody counts values and field paths in JSON.
type jsonBody struct {
	values jsonlimit.Counter
	paths  paths
}

func (b *jsonBody) count(piece []byte) counts {
	return counts{b.values.Count(piece), b.paths.count(piece)}
}

// atMost returns a check that rejects a body if count returns more than limit values.
func (t *turn) atMost(limit int, count func(piece []byte) counts) func(piece []byte) error {
	return func(piece []byte) error {
		counted := count(piece)
		if err := counted.check(limit); err != nil {
			return err
		}
		if len(piece) == 0 {
			return t.wait(counted.values)
		}
		return nil
	}
}

func (c counts) check(limit int) error {
	switch {
	case c.values > limit:
		return errTooManyValues(limit)
	case c.paths > maxPaths:
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("metadata.managedFields has more than %d paths; remove it from the body", maxPaths))
	}
	return nil
}

func errTooManyValues(limit int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d values; divide it into several objects", limit))
}

// maxExpanded is the maximum size of a YAML body, in bytes, including the values of its aliases. It
// is the same as upstream's limit on the body.
const maxExpanded = 3 << 20

// document checks a complete YAML body, including the expanded values of its aliases.
type document struct {
	limit int
	turn  *turn
	body  []byte
}

func (d *document) check(piece []byte) error {
	if len(d.body) <= maxExpanded { // upstream rejects longer bodies
		d.body = append(d.body, piece...)
	}
	if len(piece) > 0 || len(d.body) > maxExpanded {
		return nil
	}
	limit, counted := d.limit, counts{values: yamllimit.Count(d.body)}
	if json.Valid(d.body) { // JSON is also YAML; oc apply --server-side sends JSON
		counted.paths = (&paths{}).count(d.body)
	} else {
		limit = min(limit, maxPaths) // each value can be a field path
	}
	if err := counted.check(limit); err != nil {
		return err
	}
	if err := yamllimit.Check(d.body, d.limit, maxExpanded); err != nil {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body is YAML that cannot be expanded: %s; send JSON, or YAML without aliases", err))
	}
	return d.turn.wait(counted.values)
}

// streamed reports whether a subresource's request body is passed on without decoding.
func streamed(subresource string) bool {
	return slices.Contains([]string{"proxy", "exec", "attach", "portforward", "instantiatebinary", "webhooks"}, subresource)
}

// builtIn reports whether a group is a group of Kubernetes or OpenShift.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".openshift.io")
}

type boundedBody struct {
	io.ReadCloser
	check func([]byte) error
	end   bool // true after the end of the body has been checked
}

// Read reads part of the body and checks it.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var problem error
	if n > 0 {
		problem = b.check(p[:n])
	}
	if problem == nil && err == io.EOF && !b.end {
		b.end, problem = true, b.check(nil)
	}
	if problem != nil {
		return 0, problem
	}
	return n, err
}
