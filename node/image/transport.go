package image

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	"google.golang.org/grpc/codes"
)

// Maximum sizes of response bodies, in bytes. A layer's body is limited to the size in the
// manifest.
const (
	maxDocument = 4 << 20 // a manifest, an index or a configuration
	maxToken    = 1 << 20
	maxFailure  = 64 << 10 // a response that reports a failure
)

// bodyLimitKey is the context key for the response size limit.
type bodyLimitKey struct{}

// withBodyLimit limits the size of the response bodies for requests that use the context, in bytes.
// The default is maxDocument.
func withBodyLimit(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, bodyLimitKey{}, bytes)
}

// limitedTransport limits the size of response bodies, and rejects encoded bodies, because a small
// encoded body can expand without limit. It also counts the data that pulls receive.
type limitedTransport struct{ next http.RoundTripper }

// RoundTrip sends a request that does not accept any content encoding.
func (t *limitedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	plain := req.WithContext(ctx)
	plain.Header = req.Header.Clone()
	plain.Header.Set("Accept-Encoding", "identity")
	meter := meterOf(ctx)
	meter.open()
	resp, err := t.next.RoundTrip(plain)
	if err != nil {
		meter.close()
		return nil, err
	}
	body := &limitedBody{ReadCloser: resp.Body, remaining: bodyLimit(resp), meter: meter}
	resp.Body = body
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		body.Close()
		return nil, &rejection{codes.FailedPrecondition, "it encodes responses (Content-Encoding), although the request does not allow this"}
	}
	return resp, nil
}

// CloseIdleConnections closes idle connections.
func (t *limitedTransport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

func bodyLimit(resp *http.Response) int64 {
	if resp.StatusCode >= http.StatusMultipleChoices {
		return maxFailure
	}
	if limit, ok := resp.Request.Context().Value(bodyLimitKey{}).(int64); ok {
		return limit
	}
	return maxDocument
}

// limitedBody returns an error when a body exceeds its size limit.
type limitedBody struct {
	io.ReadCloser
	remaining int64
	meter     *meter
	ended     bool
}

// Read reads at most one byte beyond the limit.
func (b *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.remaining+1 {
		p = p[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.meter.add(n)
	if err != nil {
		b.end()
	}
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, &rejection{codes.FailedPrecondition, "it sends more data than the manifest specifies, or a document that is too large"}
	}
	return n, err
}

// Close closes the body.
func (b *limitedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// end records in the meter that the request has finished.
func (b *limitedBody) end() {
	if !b.ended {
		b.ended = true
		b.meter.close()
	}
}

// limitedAuthorizer limits the size of responses from servers that issue tokens. Token requests use
// the context of the request that needs the token, which can be a request for a layer.
type limitedAuthorizer struct{ docker.Authorizer }

// Authorize authorizes a request.
func (a limitedAuthorizer) Authorize(ctx context.Context, req *http.Request) error {
	return a.Authorizer.Authorize(withBodyLimit(ctx, maxToken), req)
}

// rejection is the reason why a pull rejects an image or a response. The message contains no data
// from a server. Service prefixes the message with "registry X: ".
type rejection struct {
	code    codes.Code
	message string
}

// Error returns the message.
func (r *rejection) Error() string { return r.message }

func refuse(format string, args ...any) error {
	return &rejection{codes.FailedPrecondition, fmt.Sprintf(format, args...)}
}
