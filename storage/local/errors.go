package local

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/storage/local/filesystem"
)

// statusOf gives an error that has none the gRPC status that the specification has for its kind.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, has := status.FromError(err); has {
		return err
	}
	var missing *filesystem.MissingError
	code := codes.Internal
	switch {
	case errors.Is(err, unix.ENOSPC):
		code = codes.ResourceExhausted
	case errors.Is(err, unix.EBUSY), errors.As(err, &missing):
		code = codes.FailedPrecondition
	case errors.Is(err, context.Canceled): // the driver is being stopped
		code = codes.Unavailable
	}
	return status.Error(code, err.Error())
}

// busy keeps two operations from working on one volume or snapshot.
type busy struct {
	mu   sync.Mutex
	keys map[string]bool
}

// take claims keys until release is called. The error of one that is taken tells the caller to come back, as the specification has it.
func (b *busy) take(keys ...string) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		if b.keys[key] {
			return nil, status.Errorf(codes.Aborted, "an operation on %q is under way", key)
		}
	}
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	for _, key := range keys {
		b.keys[key] = true
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, key := range keys {
			delete(b.keys, key)
		}
	}, nil
}
