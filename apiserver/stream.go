package apiserver

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Stream is an answer that is text, sent as it is read, such as a log.
type Stream struct {
	metav1.TypeMeta
	// Follow sends each line at once.
	Follow bool
	// Open begins to read.
	Open func(context.Context) (io.ReadCloser, error)
}

var _ rest.ResourceStreamer = &Stream{}

// DeepCopyObject is the stream itself, which is read once.
func (s *Stream) DeepCopyObject() runtime.Object { return s }

// InputStream opens the text.
func (s *Stream) InputStream(ctx context.Context, _, _ string) (content io.ReadCloser, flush bool, mime string, err error) {
	content, err = s.Open(ctx)
	return content, s.Follow, "text/plain", err
}
