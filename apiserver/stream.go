package apiserver

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Stream is a text response, such as a log, that is sent while it is being read.
type Stream struct {
	metav1.TypeMeta
	// Follow means that each write is flushed immediately.
	Follow bool
	// Open opens the text.
	Open func(context.Context) (io.ReadCloser, error)
}

var _ rest.ResourceStreamer = &Stream{}

// DeepCopyObject returns the stream itself, because a stream is read only once.
func (s *Stream) DeepCopyObject() runtime.Object { return s }

// InputStream opens the text.
func (s *Stream) InputStream(ctx context.Context, _, _ string) (content io.ReadCloser, flush bool, mime string, err error) {
	content, err = s.Open(ctx)
	return content, s.Follow, "text/plain", err
}
