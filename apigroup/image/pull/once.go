package pull

import (
	"fmt"

	imagev1 "github.com/openshift/api/image/v1"
)

// MaxStreams is the maximum number of image streams that the API server reads for a request. A
// stream can have several megabytes, and an object can have thousands of references to images.
const MaxStreams = 100

// Find returns an image stream, or nil if the stream does not exist.
type Find func(namespace, name string) (*imagev1.ImageStream, error)

// Once returns a function that calls find at most once for each stream. The function returns an
// error after MaxStreams streams.
func Once(find Find) Find {
	type key struct{ namespace, name string }
	streams := map[key]*imagev1.ImageStream{}
	return func(namespace, name string) (*imagev1.ImageStream, error) {
		k := key{namespace, name}
		if stream, ok := streams[k]; ok {
			return stream, nil
		}
		if len(streams) == MaxStreams {
			return nil, fmt.Errorf("an object cannot refer to more than %d image streams; create several objects", MaxStreams)
		}
		stream, err := find(namespace, name)
		if err == nil {
			streams[k] = stream
		}
		return stream, err
	}
}
