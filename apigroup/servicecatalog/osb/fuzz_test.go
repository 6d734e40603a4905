package osb

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// fixedResponse is a transport that returns the same response to every request.
type fixedResponse struct {
	code       int
	body       string
	retryAfter string
}

// RoundTrip implements http.RoundTripper.
func (a fixedResponse) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Header: http.Header{"Retry-After": {a.retryAfter}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// FuzzResponses verifies that no broker response crashes the program, and that all parts that are
// shown or stored are within the limits.
func FuzzResponses(f *testing.F) {
	f.Add(200, `{"services": [{"id": "a", "plans": [{}]}]}`, "")
	f.Add(202, `{"operation": "x", "dashboard_url": "javascript:alert(1)"}`, "3")
	f.Add(422, `{"error": "AsyncRequired", "description": "x"}`, "99999999999")
	f.Add(302, "[", "-1")
	f.Fuzz(func(t *testing.T, code int, body, retryAfter string) {
		if code < http.StatusOK || code > 999 {
			return
		}
		c := &Client{URL: "https://broker.example.com", Transport: fixedResponse{code, body, retryAfter}, IsTenant: true}
		target := Target{Instance: "i", Binding: "b"}
		check := func(result *Result, err error) {
			if err != nil && len(err.Error()) > 4*maxErrorText {
				t.Errorf("status %s: the error has %d characters", strconv.Itoa(code), len(err.Error()))
			}
			if result != nil && (len(result.Operation) > maxOperation || len(result.DashboardURL) > maxErrorText) {
				t.Errorf("the result has an operation of %d and a URL of %d characters", len(result.Operation), len(result.DashboardURL))
			}
		}
		_, err := c.Catalog(t.Context())
		check(nil, err)
		check(c.Provision(t.Context(), target, &Provision{}))
		check(c.Bind(t.Context(), target, &Bind{}, true))
		check(c.Delete(t.Context(), target))
	})
}
