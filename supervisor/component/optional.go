package component

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// defaultRetryInterval is the delay before a failed optional component is restarted.
const defaultRetryInterval = 10 * time.Second

// Optional is a component that its process can work without, such as a router whose port is in use.
// If it fails, it is still ready, notes the error and retries.
type Optional struct {
	// Component is the component's name.
	Component string
	// Serve runs until ctx is done or an error occurs. It calls ready when it serves. It can call
	// note to report what it lacks while it serves. It is called again after an error.
	Serve func(ctx context.Context, ready func(), note func(text string)) error
	// ReadyFirst is for a component that no other component waits for: it is ready before it
	// serves.
	ReadyFirst bool
	// RetryInterval is the delay after an error. It defaults to 10 seconds.
	RetryInterval time.Duration

	mu     sync.Mutex
	report func(string)
	last   string // the note that was reported last
}

// Name returns the component's name.
func (o *Optional) Name() string { return o.Component }

// Notes sets the function that reports what the component lacks.
func (o *Optional) Notes(note func(text string)) { o.report = note }

// note reports a text if it differs from the previous one.
func (o *Optional) note(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.report != nil && text != o.last {
		o.report(text)
	}
	o.last = text
}

// Run serves until ctx is done. It retries after errors and never returns an error.
func (o *Optional) Run(ctx context.Context, ready func()) error {
	ready = sync.OnceFunc(ready)
	if o.ReadyFirst {
		ready()
	}
	interval := o.RetryInterval
	if interval == 0 {
		interval = defaultRetryInterval
	}
	for ctx.Err() == nil {
		err := o.Serve(ctx, func() { ready(); o.note("") }, o.note)
		if ctx.Err() != nil {
			return nil
		}
		slog.Error("optional component failed", "component", o.Component, "error", err, "retryAfter", interval)
		ready()
		if err != nil {
			o.note(err.Error())
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
		}
	}
	return nil
}
