package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// The limits of values in the body of a request. Upstream bounds the bytes of a body, three
// mebibytes. An empty element takes two bytes there and, for instance as a container of a pod,
// thousands when it is decoded, defaulted, converted and validated.
const (
	// maxValues is for objects of projects: the largest real ones have some thousand values.
	maxValues = 20_000
	// maxLooseValues is for objects of the cluster, such as groups of many users, and for custom
	// resources, whose values are decoded into little memory each.
	maxLooseValues = 200_000
)

// BoundBodies refuses requests whose body would be decoded into much more memory than it has bytes.
// It comes after authentication. What is passed on without being decoded has no limit, nor have
// members of system:masters.
func BoundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if count, limit := bodyLimit(r); count != nil {
			r = r.Clone(r.Context())
			r.Body = &boundedBody{ReadCloser: r.Body, count: count, limit: limit}
		}
		next.ServeHTTP(w, r)
	})
}

// bodyLimit returns how the values of a request's body are counted, nil for not at all.
func bodyLimit(r *http.Request) (count func(piece []byte) int, limit int) {
	asked, ok := request.RequestInfoFrom(r.Context())
	if !ok || !asked.IsResourceRequest || r.Body == nil || r.Body == http.NoBody || streamed(asked.Subresource) {
		return nil, 0
	}
	if who, ok := request.UserFrom(r.Context()); ok && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return nil, 0
	}
	limit = maxValues
	if asked.Namespace == "" || !builtIn(asked.APIGroup) {
		limit = maxLooseValues
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // what cannot be read is JSON for upstream, or refused
	switch {
	case strings.HasSuffix(media, "protobuf"):
		return (&messages{}).count, limit
	case strings.HasSuffix(media, "yaml"):
		counter := &jsonlimit.Counter{}
		lines := 0
		return func(piece []byte) int {
			lines += bytes.Count(piece, []byte("\n"))
			return lines + counter.Count(piece)
		}, limit
	}
	return (&jsonlimit.Counter{}).Count, limit
}

// streamed reports whether the body of a subresource is passed on.
func streamed(subresource string) bool {
	return slices.Contains([]string{"proxy", "exec", "attach", "portforward", "instantiatebinary", "webhooks"}, subresource)
}

// builtIn reports whether the types of a group are those of Kubernetes or OpenShift.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".openshift.io")
}

type boundedBody struct {
	io.ReadCloser
	count func([]byte) int
	limit int
}

// Read reads a piece and counts it.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	values := b.count(p[:n])
	if err == io.EOF {
		values = b.count(nil)
	}
	if values > b.limit {
		return 0, errors.NewRequestEntityTooLargeError(fmt.Sprintf("the body has more than %d values; divide it into several objects", b.limit))
	}
	return n, err
}

// messages counts the elements of lists in a protobuf message: messages, texts and bytes. Each
// takes at least two bytes.
type messages struct {
	body   []byte
	counts int
}

// count adds a piece. It looks at the body again when that has doubled, and when nothing is added,
// which is the end.
func (m *messages) count(piece []byte) int {
	const first = 16 << 10
	before := len(m.body)
	m.body = append(m.body, piece...)
	if len(piece) == 0 || before < first && len(m.body) >= first || len(m.body) >= 2*before {
		m.counts = elements(bytes.TrimPrefix(m.body, []byte("k8s\x00")), 0)
	}
	return m.counts
}

// maxDepth bounds how deep messages are looked into. Those of Kubernetes are not as deep.
const maxDepth = 40

// The kinds of fields of protobuf's encoding that the count tells apart.
const (
	kindVarint, kindFixed64, kindBytes, kindStartGroup, kindEndGroup, kindFixed32 = 0, 1, 2, 3, 4, 5
)

// elements counts the fields with a length that come again in a message, which is how lists are
// written, and those of the messages within, up to where it is none. It accepts at least what the
// decoders of Kubernetes do: what it does not count they must not decode.
func elements(message []byte, depth int) (count int) {
	const numbers = 64
	var seen uint64 // the numbers of fields below 64
	for len(message) > 0 && depth < maxDepth {
		tag, n := varint(message)
		if n == 0 {
			return count
		}
		message, n = message[n:], 0
		switch tag & 7 {
		case kindVarint:
			_, n = varint(message)
		case kindFixed64:
			n = 8
		case kindFixed32:
			n = 4
		case kindStartGroup, kindEndGroup:
		case kindBytes:
			length, size := varint(message)
			if size == 0 {
				return count
			}
			end := len(message) // the rest of a longer one is not there yet
			if length < uint64(end-size) {
				end = size + int(length)
			}
			if number := tag >> 3; number >= numbers || seen&(1<<number) != 0 {
				count++
			} else {
				seen |= 1 << number
			}
			count += elements(message[size:end], depth+1)
			n = end
		default:
			return count
		}
		message = message[min(n, len(message)):]
	}
	return count
}

// varint reads a number of variable length and returns how many bytes it has, 0 for none. Bits that
// do not fit are dropped, as generated decoders do.
func varint(text []byte) (value uint64, n int) {
	const most = 10
	for n < min(len(text), most) {
		value |= uint64(text[n]&0x7f) << (7 * n)
		n++
		if text[n-1] < 0x80 {
			return value, n
		}
	}
	return 0, 0
}
