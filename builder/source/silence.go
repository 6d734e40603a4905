package source

import (
	"context"
	"errors"
	"io"
	"runtime/metrics"
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

// errLarge says that a source takes too much memory.
var errLarge = errors.New("the repository has objects or references that are too large to be held in memory: build from another one, or send the source as an archive")

// memory is the limit's.
func (l *Limit) memory() uint64 {
	if l.Memory == 0 {
		return DefaultMemory
	}
	return l.Memory
}

// heldPeriod is how often it is looked at what the process holds.
const heldPeriod = 50 * time.Millisecond

// watch is a context that ends when nothing is written for too long, or when too much is held in memory. stop must be called.
func (l *Limit) watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(min(heldPeriod, l.silence()))
		defer tick.Stop()
		written, since := int64(-1), time.Now()
		for {
			if now := l.bytes.Load() + l.files.Load(); now != written {
				written, since = now, time.Now()
			}
			switch {
			case time.Since(since) >= l.silence():
				cancel(errSilent)
				return
			case held() > l.memory():
				cancel(errLarge)
				return
			}
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// held is what the process holds in memory, in bytes, with what it has not yet noticed that it needs no more.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
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
