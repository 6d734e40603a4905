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

// statusOf adds the gRPC status that the CSI specification requires to an error that has no status.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	var missing *filesystem.MissingProgramError
	code := codes.Internal
	switch {
	case errors.Is(err, unix.ENOSPC):
		code = codes.ResourceExhausted
	case errors.Is(err, unix.EBUSY), errors.As(err, &missing):
		code = codes.FailedPrecondition
	case errors.Is(err, context.Canceled): // the driver is stopping
		code = codes.Unavailable
	}
	return status.Error(code, err.Error())
}

// keyedLock prevents concurrent operations on the same volume or snapshot.
type keyedLock struct {
	mu   sync.Mutex
	keys map[string]bool
}

// acquire locks keys until release is called. If a key is already locked, acquire returns an error
// with a code that makes callers retry, as the CSI specification requires.
func (b *keyedLock) acquire(keys ...string) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		if b.keys[key] {
			return nil, status.Errorf(codes.Aborted, "an operation on %q is in progress", key)
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
