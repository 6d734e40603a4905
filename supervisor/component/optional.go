package component

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// defaultRetryInterval is the delay before a failed optional component is restarted.
const defaultRetryInterval = 10 * time.Second

// Optional is a component that its process does not require, such as a router whose port is in use.
// If the component fails, it is still ready, reports the error in a note, and retries.
type Optional struct {
	// Component is the component's name.
	Component string
	// Serve runs until ctx is done or an error occurs. It calls ready when the component is ready
	// to serve. While the component serves, Serve can call note to report what the component lacks.
	// Serve is called again after an error.
	Serve func(ctx context.Context, ready func(), note func(text string)) error
	// ReadyFirst means that the component is ready before it serves. It is allowed only if no other
	// component waits for the component.
	ReadyFirst bool
	// RetryInterval is the delay after an error. It defaults to 10 seconds.
	RetryInterval time.Duration

	mu     sync.Mutex
	report func(string)
	last   string // the last reported note
}

// Name returns the component's name.
func (o *Optional) Name() string { return o.Component }

// Notes sets the function that is called with a description of what the component lacks.
func (o *Optional) Notes(note func(text string)) { o.report = note }

// note reports a text if it differs from the previous text.
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
