package source

import (
	"context"
	"errors"
	"io"
	"runtime/metrics"
	"time"
)

// errSilent is the error for a source that has stopped sending data.
var errSilent = errors.New("the transfer of the source stalled: check the server or the client that sends it, and start the build again")

// errTooLarge is the error for a source that requires too much memory.
var errTooLarge = errors.New("the objects or references of the repository are too large for the memory of a build: build from a smaller repository, or upload the source as an archive")

// memoryCheckInterval is the maximum interval between watch's checks of the process's memory usage.
const memoryCheckInterval = 50 * time.Millisecond

func (l *Limit) silenceTimeout() time.Duration {
	if l.SilenceTimeout == 0 {
		return DefaultSilenceTimeout
	}
	return l.SilenceTimeout
}

func (l *Limit) maxMemory() uint64 {
	if l.Memory == 0 {
		return DefaultMemory
	}
	return l.Memory
}

// watch returns a context that is canceled if the source sends no data for too long, or if the
// process uses too much memory. The caller must call stop.
func (l *Limit) watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(min(memoryCheckInterval, l.silenceTimeout()))
		defer ticker.Stop()
		size, lastWrite := int64(-1), time.Now()
		for {
			if n := l.bytes.Load() + l.files.Load(); n != size {
				size, lastWrite = n, time.Now()
			}
			switch {
			case time.Since(lastWrite) >= l.silenceTimeout():
				cancel(errSilent)
				return
			case heapBytes() > l.maxMemory():
				cancel(errTooLarge)
				return
			}
			select {
			case <-watched.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// heapBytes returns the size of all heap objects, including garbage that is not yet collected.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// silenceReader reads an upload. A read fails if the context is done, or if no data arrives for too
// long.
type silenceReader struct {
	*io.PipeReader
	closeWithError func(error)
	stop           func() bool
	timeout        time.Duration
}

// newSilenceReader starts to read upload. If a read from upload never returns, its goroutine runs
// until the process exits.
func newSilenceReader(ctx context.Context, upload io.Reader, limit *Limit) *silenceReader {
	reader, writer := io.Pipe()
	closeWithError := func(err error) { _ = writer.CloseWithError(err) } // always returns nil
	go func() {
		_, err := io.Copy(writer, upload)
		closeWithError(err)
	}()
	stop := context.AfterFunc(ctx, func() { closeWithError(context.Cause(ctx)) })
	return &silenceReader{reader, closeWithError, stop, limit.silenceTimeout()}
}

// Read implements io.Reader.
func (r *silenceReader) Read(p []byte) (int, error) {
	timer := time.AfterFunc(r.timeout, func() { r.closeWithError(errSilent) })
	defer timer.Stop()
	return r.PipeReader.Read(p)
}

// Close implements io.Closer.
func (r *silenceReader) Close() error {
	r.stop()
	return r.PipeReader.Close()
}
