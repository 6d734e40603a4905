package pull

import (
	"fmt"

	imagev1 "github.com/openshift/api/image/v1"
)

// MaxStreams is the maximum number of image streams that the API server reads for a request. The
// number is limited because a stream can be several megabytes in size, and an object can contain
// thousands of image references.
const MaxStreams = 100

// Find returns an image stream, or nil if the stream does not exist.
type Find func(namespace, name string) (*imagev1.ImageStream, error)

// Once returns a function that calls find at most once for each stream, even if find returns an
// error. The function returns an error after MaxStreams streams.
func Once(find Find) Find {
	type key struct{ namespace, name string }
	type result struct {
		stream *imagev1.ImageStream
		err    error
	}
	results := map[key]result{}
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		k := key{namespace, name}
		if r, ok := results[k]; ok {
			return r.stream, r.err
		}
		if len(results) == MaxStreams {
			return nil, fmt.Errorf("an object cannot refer to more than %d image streams; create several objects", MaxStreams)
		}
		stream, err := find(namespace, name)
		results[k] = result{stream, err}
		return stream, err
	}
}
