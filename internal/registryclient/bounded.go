package registryclient

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

const (
	// maxAnswer bounds an answer that is held in memory, in bytes. It is the largest manifest that
	// distribution takes.
	maxAnswer = 4 << 20
	// maxValues bounds the JSON values of an answer, since {} is decoded into hundreds of bytes.
	// Manifests and configurations have hundreds of values. maxListed bounds those of a list of
	// tags, each of which is small.
	maxValues, maxListed = 10_000, 200_000
)

// bounded carries requests. Reading an answer with more bytes or JSON values than the limits is an
// error, as is reading more than the account allows.
type bounded struct {
	http.RoundTripper
	account *Account
}

// RoundTrip carries a request.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	values := maxValues
	if strings.HasSuffix(request.URL.Path, "/tags/list") {
		values = maxListed
	}
	answer.Body = &boundedBody{jsonlimit.Reader(answer.Body, values), answer.Body, maxAnswer, b.account}
	return answer, nil
}

type boundedBody struct {
	io.Reader
	io.Closer
	left    int64
	account *Account
}

// Read reads up to the limit, and one byte more to tell whether there is more.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, ours{fmt.Errorf("the registry's answer is larger than %d bytes", maxAnswer)}
	}
	if busy := b.account.take(int64(n)); busy != nil {
		return 0, ours{busy}
	}
	return n, err
}
