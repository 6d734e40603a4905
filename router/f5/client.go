package f5

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// requestTimeout is the timeout for a request. It is long because an appliance with many
	// objects is slow.
	requestTimeout = time.Minute
	// maxResponseBytes is the maximum size of a response, in bytes.
	maxResponseBytes = 256 << 20
)

// client is a client for the appliance's REST API.
type client struct {
	http *http.Client
	// base is the base URL of the API, without a path.
	base           string
	user, password string
}

func newClient(c *Config) *client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure},
		MaxConnsPerHost: 2, IdleConnTimeout: 2 * time.Minute,
	}
	// Do not follow redirects. The appliance never redirects, and the password must not reach any
	// other server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{
		http: &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: stay},
		base: "https://" + c.Address, user: c.User, password: c.Password,
	}
}

// Failure is an error response from the appliance.
type Failure struct {
	// Status is the HTTP status code.
	Status int
	// Message is the appliance's error message, or "".
	Message string
}

// Error returns the error message. For common failures, the message contains a remedy.
func (f *Failure) Error() string {
	switch f.Status {
	case http.StatusUnauthorized:
		return "the appliance rejects the user or the password: check " + prefix + "USERNAME and " + prefix + "PASSWORD"
	case http.StatusForbidden:
		return "the user may not change the appliance: it needs the role Administrator"
	}
	if f.Message == "" {
		return fmt.Sprintf("the appliance responds with %d", f.Status)
	}
	return fmt.Sprintf("the appliance responds with %d: %s", f.Status, f.Message)
}

// is reports whether an error is a Failure with the given status code.
func is(err error, status int) bool {
	var failure *Failure
	return errors.As(err, &failure) && failure.Status == status
}

// get reads a resource at a path below /mgmt/tm.
func (c *client) get(ctx context.Context, path string, result any) error {
	return c.call(ctx, http.MethodGet, path, nil, result)
}

// call sends a request with a JSON body to a path below /mgmt/tm, and decodes the response. body
// and result can be nil.
func (c *client) call(ctx context.Context, method, path string, body, result any) error {
	var content io.Reader
	if body != nil {
		text, err := encode(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		content = bytes.NewReader(text)
	}
	response, err := c.send(ctx, method, "/mgmt/tm/"+path, content, nil)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(response, result); err != nil {
		return fmt.Errorf("%s %s: read response: %w", method, path, err)
	}
	return nil
}

// encode returns JSON in which <, > and & are not escaped, because some appliance versions do not
// decode escaped characters.
func encode(body any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	return buffer.Bytes(), err
}

// send sends a request and returns the response body. Its errors contain the path, but never the
// password or the request body.
func (c *client) send(ctx context.Context, method, path string, body io.Reader, header http.Header) ([]byte, error) {
	fail := func(err error) error { return fmt.Errorf("%s %s: %w", method, path, err) }
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fail(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		request.Header[name] = values
	}
	request.SetBasicAuth(c.user, c.password)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request to the appliance: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return nil, fail(err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		failure := &Failure{Status: response.StatusCode}
		var resp struct{ Message string }
		if json.Unmarshal(content, &resp) == nil { // some responses are HTML
			failure.Message = resp.Message
		}
		return nil, fail(failure)
	}
	return content, nil
}

// escape encodes a full path such as /Common/pool for use in a URL.
func escape(path string) string { return strings.ReplaceAll(path, "/", "~") }
