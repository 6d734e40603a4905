package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Version is the API version that requests specify.
const Version = "2.17"

const versionHeader = "X-Broker-API-Version"

// maxBody is the maximum size of a response, in bytes.
const maxBody = 4 << 20

// response is the response to a request. body is nil if the response is not a JSON object.
type response struct {
	code       int
	header     http.Header
	body       map[string]any
	retryAfter time.Duration
}

// text returns a string field of the body, or "".
func (r response) text(key string) string {
	value, _ := r.body[key].(string)
	return value
}

// description returns the error code and the error description in the body.
func (r response) description() string {
	return strings.TrimSpace(r.text("error") + " " + r.text("description"))
}

// send sends a request with the credentials. If change is not nil, send calls it to modify the
// request.
func (c *checker) send(ctx context.Context, method, path string, body any, change func(*http.Request)) (response, error) {
	var content []byte
	if text, ok := body.(string); ok {
		content = []byte(text)
	} else if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return response{}, fmt.Errorf("encode request: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, bytes.NewReader(content))
	if err != nil {
		return response{}, err
	}
	request.Header.Set(versionHeader, Version)
	request.Header.Set("Content-Type", "application/json")
	c.Authorize(request)
	if change != nil {
		change(request)
	}
	reply, err := c.Client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxBody+1))
	if err != nil {
		return response{}, fmt.Errorf("read response to %s %s: %w", method, path, err)
	}
	if len(text) > maxBody {
		return response{}, fmt.Errorf("response to %s %s has more than %d bytes", method, path, maxBody)
	}
	result := response{code: reply.StatusCode, header: reply.Header}
	_ = json.Unmarshal(text, &result.body)
	seconds, _ := strconv.Atoi(reply.Header.Get("Retry-After"))
	result.retryAfter = time.Duration(seconds) * time.Second
	return result, nil
}
