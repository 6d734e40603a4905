package osb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// Limits on responses and requests.
const (
	maxCatalogBytes  = 16 << 20 // for brokers that an administrator created
	maxResponseBytes = 1 << 20
	maxErrorText     = 1024
	// maxValues and maxCatalogValues are the maximum numbers of JSON values in a response and in a
	// catalog.
	maxValues, maxCatalogValues = 10_000, 500_000
	// maxRetryAfter is the maximum delay that a broker can request.
	maxRetryAfter = 20 * time.Minute
)

// RequestTimeout is the timeout for a request.
const RequestTimeout = 60 * time.Second

// Client is a client for one broker.
type Client struct {
	// URL is the broker's base URL.
	URL string
	// Transport sends the requests.
	Transport http.RoundTripper
	// Authorization is the value of the Authorization header, or "".
	Authorization string
	// IsTenant means that a tenant created the broker. The broker's catalog then has the same
	// limits as its other responses.
	IsTenant bool
	// Timeout is the timeout for a request. The default is RequestTimeout.
	Timeout time.Duration
}

// Target identifies an instance or, if Binding is set, a binding to the instance.
type Target struct {
	Instance, Binding string
	ServiceID, PlanID string
	// Operation is the operation ID to poll.
	Operation string
	// User is the originator of the request.
	User *authenticationv1.UserInfo
}

func (t Target) path() string {
	path := "/v2/service_instances/" + url.PathEscape(t.Instance)
	if t.Binding != "" {
		path += "/service_bindings/" + url.PathEscape(t.Binding)
	}
	return path
}

// identifiers returns the query parameters that identify the class and the plan.
func (t Target) identifiers() url.Values {
	values := url.Values{}
	for key, value := range map[string]string{"service_id": t.ServiceID, "plan_id": t.PlanID, "operation": t.Operation} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return values
}

// Catalog fetches the broker's catalog.
func (c *Client) Catalog(ctx context.Context) (*Catalog, error) {
	catalog := &Catalog{}
	r := request{method: http.MethodGet, path: "/v2/catalog", into: catalog, accept: []int{http.StatusOK}}
	if !c.IsTenant {
		r.limit, r.maxValues = maxCatalogBytes, maxCatalogValues
	}
	_, err := c.do(ctx, r)
	return catalog, err
}

// Provision creates an instance.
func (c *Client) Provision(ctx context.Context, target Target, body *Provision) (*Result, error) {
	return c.change(ctx, http.MethodPut, target, url.Values{"accepts_incomplete": {"true"}}, body, http.StatusOK, http.StatusCreated)
}

// Update changes an instance.
func (c *Client) Update(ctx context.Context, target Target, body *Update) (*Result, error) {
	return c.change(ctx, http.MethodPatch, target, url.Values{"accepts_incomplete": {"true"}}, body, http.StatusOK)
}

// Delete deprovisions an instance or deletes a binding. If the broker does not have the instance or
// binding, the error is an *Error whose Gone method returns true.
func (c *Client) Delete(ctx context.Context, target Target) (*Result, error) {
	target.Operation = ""
	query := target.identifiers()
	query.Set("accepts_incomplete", "true")
	return c.change(ctx, http.MethodDelete, target, query, nil, http.StatusOK)
}

// Bind creates a binding. If async is set, the broker can create the binding asynchronously.
func (c *Client) Bind(ctx context.Context, target Target, body *Bind, async bool) (*Result, error) {
	query := url.Values{}
	if async {
		query.Set("accepts_incomplete", "true")
	}
	return c.change(ctx, http.MethodPut, target, query, body, http.StatusOK, http.StatusCreated)
}

// Binding returns an existing binding.
func (c *Client) Binding(ctx context.Context, target Target) (*Result, error) {
	result := &Result{}
	target.Operation = ""
	_, err := c.do(ctx, request{
		method: http.MethodGet, path: target.path(), query: target.identifiers(), user: target.User, into: result, accept: []int{http.StatusOK},
	})
	return result, err
}

// Instance returns an existing instance.
func (c *Client) Instance(ctx context.Context, target Target) (*Result, error) {
	result := &Result{}
	target.Operation, target.Binding = "", ""
	_, err := c.do(ctx, request{
		method: http.MethodGet, path: target.path(), query: target.identifiers(), user: target.User, into: result, accept: []int{http.StatusOK},
	})
	if len(result.DashboardURL) > maxErrorText {
		result.DashboardURL = ""
	}
	return result, err
}

// LastOperation returns the state of the current operation.
func (c *Client) LastOperation(ctx context.Context, target Target) (*State, error) {
	state := &State{}
	response, err := c.do(ctx, request{
		method: http.MethodGet, path: target.path() + "/last_operation", query: target.identifiers(), user: target.User,
		into: state, accept: []int{http.StatusOK},
	})
	if err != nil {
		return nil, err
	}
	switch state.State {
	case InProgress, Succeeded, Failed:
	default:
		return nil, fmt.Errorf("poll last operation: the broker returned the state %q", shorten(state.State))
	}
	state.RetryAfter = retryAfter(response.Header)
	state.Description = shorten(state.Description)
	return state, nil
}

func (c *Client) change(ctx context.Context, method string, target Target, query url.Values, body any, accept ...int) (*Result, error) {
	result := &Result{}
	response, err := c.do(ctx, request{
		method: method, path: target.path(), query: query, user: target.User, body: body, into: result, accept: append(accept, http.StatusAccepted),
	})
	if err != nil {
		return nil, err
	}
	if len(result.DashboardURL) > maxErrorText {
		result.DashboardURL = ""
	}
	result.Async = response.StatusCode == http.StatusAccepted
	if len(result.Operation) > maxOperation {
		return nil, &Error{StatusCode: http.StatusBadGateway, Description: fmt.Sprintf("the operation ID is longer than %d characters", maxOperation)}
	}
	return result, nil
}

// maxOperation is the maximum length of an operation ID, as defined by the API.
const maxOperation = 10000

// request is a request to a broker.
type request struct {
	method, path string
	query        url.Values
	user         *authenticationv1.UserInfo
	body, into   any
	limit        int64 // maximum size of the response, in bytes
	maxValues    int
	accept       []int
}

// do sends a request and decodes the response.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = RequestTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call broker: %w", err)
	}
	defer response.Body.Close()
	limit := r.limit
	if limit == 0 {
		limit = maxResponseBytes
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil && isAccepted(r, response):
		return nil, fmt.Errorf("read broker response: %w", err)
	case int64(len(body)) > limit:
		return nil, &Error{StatusCode: badBody(response.StatusCode), Description: fmt.Sprintf("the response is larger than %d bytes", limit)}
	case !isAccepted(r, response):
		return nil, failure(response, body)
	}
	if r.method == http.MethodDelete && len(bytes.TrimSpace(body)) == 0 {
		return response, nil // brokers of earlier versions return no body
	}
	if jsonlimit.Check(body, max(r.maxValues, maxValues)) != nil || json.Unmarshal(body, r.into) != nil {
		return nil, &Error{StatusCode: badBody(response.StatusCode), Description: unexpectedSuccessMessage}
	}
	return response, nil
}

func isAccepted(r request, response *http.Response) bool {
	for _, code := range r.accept {
		if response.StatusCode == code {
			return true
		}
	}
	return false
}

// badBody returns the status code of the error for a successful response with an invalid body. Any
// code except 200 means that the broker might have created something.
func badBody(code int) int {
	if code == http.StatusOK {
		return http.StatusBadGateway
	}
	return code
}

func (c *Client) request(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		content, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(content)
	}
	address := strings.TrimSuffix(c.URL, "/") + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, errors.New("the broker's URL is not valid")
	}
	req.Header.Set(versionHeader, Version)
	req.Header.Set("Accept", "application/json")
	req.Header.Set(requestIDHeader, uuid.NewString())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Authorization != "" {
		req.Header.Set("Authorization", c.Authorization)
	}
	if r.user != nil {
		identity, err := Identity(r.user)
		if err != nil {
			return nil, err
		}
		req.Header.Set(identityHeader, identity)
	}
	return req, nil
}

// failure returns the error for an unsuccessful response.
func failure(response *http.Response, body []byte) error {
	var content struct{ Error, Description string }
	result := &Error{StatusCode: response.StatusCode, RetryAfter: retryAfter(response.Header)}
	if jsonlimit.Check(body, maxValues) == nil && json.Unmarshal(body, &content) == nil {
		result.Code, result.Description = shorten(content.Error), shorten(content.Description)
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		result.Description = "the broker redirects the request; correct the broker's URL"
	}
	return result
}

// retryAfter returns the delay in a Retry-After header that contains seconds.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// shorten truncates a broker's text before it is shown to users.
func shorten(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "..."
}
