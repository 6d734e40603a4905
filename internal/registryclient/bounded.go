package registryclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

const (
	// maxResponse is the maximum size of a response that is read into memory, in bytes. It matches
	// distribution's limit on manifests.
	maxResponse = 4 << 20
	// maxValues is the maximum number of JSON values in a response. The limit is needed because {}
	// decodes to hundreds of bytes. Manifests and configurations have hundreds of values. maxListed
	// is the limit for tag lists, whose values are small.
	maxValues, maxListed = 10_000, 200_000
)

// bounded sends requests. Reading a response fails once it exceeds the limit on bytes, the limit on
// JSON values, or the account's budget.
type bounded struct {
	http.RoundTripper
	account *Account
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	values := maxValues
	if strings.HasSuffix(request.URL.Path, "/tags/list") {
		values = maxListed
	}
	response.Body = &boundedBody{jsonlimit.Reader(response.Body, values), response.Body, maxResponse, b.account}
	return response, nil
}

type boundedBody struct {
	io.Reader
	io.Closer
	remaining int64
	account   *Account
}

// Read reads up to the limit, plus one byte to detect a larger response.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.remaining+1)])
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, ours{fmt.Errorf("the registry's response is larger than %d bytes", maxResponse)}
	}
	if busy := b.account.take(int64(n)); busy != nil {
		return 0, ours{busy}
	}
	return n, err
}
