package registryclient

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// maxAnswer bounds what is held in memory of a registry's answer, in bytes.
const maxAnswer = 4 << 20

// maxAnswers bounds what a session reads, in bytes: a thousand images have about thirty megabytes of manifests and configurations.
const maxAnswers = 128 << 20

// bounded carries requests; reading an answer of more than limit bytes is an error, and so is more of all answers than there is left.
type bounded struct {
	http.RoundTripper
	limit int64
	left  *atomic.Int64
}

// RoundTrip carries a request.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	answer.Body = &boundedBody{answer.Body, b.limit, b.limit, b.left}
	return answer, nil
}

type boundedBody struct {
	io.ReadCloser
	limit, left int64
	leftOfAll   *atomic.Int64
}

// Read reads up to the limit, and one byte more to tell whether there is more.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the registry's answer is larger than %d bytes", b.limit)
	}
	if b.leftOfAll.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("what is read at once of registries is more than %d bytes: read less", maxAnswers)
	}
	return n, err
}
