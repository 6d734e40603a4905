package source

import (
	"context"
	"errors"
	"io"
	"time"
)

// errSilent says that a source stands still.
var errSilent = errors.New("nothing has come for too long: start the build again, and look at the server or the client that should send its source")

// silence is the limit's.
func (l *Limit) silence() time.Duration {
	if l.Silence == 0 {
		return DefaultSilence
	}
	return l.Silence
}

// watch is a context that ends when nothing is written for too long. stop must be called.
func (l *Limit) watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for before := int64(-1); ; {
			now := l.bytes.Load() + l.files.Load()
			if now == before {
				cancel(errSilent)
				return
			}
			before = now
			select {
			case <-watched.Done():
				return
			case <-time.After(l.silence()):
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// arriving is what is sent to a build. Reads end with the context, and when nothing comes for too long.
type arriving struct {
	*io.PipeReader
	end     func(error)
	forget  func() bool
	silence time.Duration
}

// arrive begins to read. A read of from that nothing ends is left to the end of the process.
func arrive(ctx context.Context, from io.Reader, limit *Limit) *arriving {
	reader, writer := io.Pipe()
	end := func(err error) { _ = writer.CloseWithError(err) } // it has no error
	go func() {
		_, err := io.Copy(writer, from)
		end(err)
	}()
	return &arriving{reader, end, context.AfterFunc(ctx, func() { end(context.Cause(ctx)) }), limit.silence()}
}

// Read reads.
func (a *arriving) Read(p []byte) (int, error) {
	late := time.AfterFunc(a.silence, func() { a.end(errSilent) })
	defer late.Stop()
	return a.PipeReader.Read(p)
}

// Close ends it.
func (a *arriving) Close() error {
	a.forget()
	return a.PipeReader.Close()
}
