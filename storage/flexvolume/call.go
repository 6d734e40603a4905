package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Observer receives events from a Registry and its drivers, for metrics. Its methods must not
// block.
type Observer interface {
	// CallBegins is followed by exactly one CallEnds. The reported duration includes the time spent
	// waiting for the volume's lock and for a driver slot.
	CallBegins(driver string, op Operation)
	CallEnds(Call)
	ScanEnds(Scan)
}

// Call is the result of one driver call.
type Call struct {
	Driver    string
	Operation Operation
	Duration  time.Duration
	// Kind is empty for success and for "Not supported".
	Kind Kind
}

// Scan is the result of one scan of the plugin directory.
type Scan struct {
	Duration time.Duration
	// Err is nil if the directory was read successfully.
	Err error
}

// noopObserver is used if Registry.Observer is nil.
type noopObserver struct{}

func (noopObserver) CallBegins(string, Operation) {}
func (noopObserver) CallEnds(Call)                {}
func (noopObserver) ScanEnds(Scan)                {}

// unsupportedOps is the set of operations for which a driver version has returned "Not supported".
// The engine does not call these operations again.
type unsupportedOps struct {
	mu  sync.Mutex
	ops map[Operation]bool
}

func (l *unsupportedOps) has(op Operation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ops[op]
}

func (l *unsupportedOps) add(op Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ops == nil {
		l.ops = map[Operation]bool{}
	}
	l.ops[op] = true
}

// call describes one driver call. volume is the ID of the volume to lock. secrets contains the
// secret values in args.
type call struct {
	op      Operation
	args    []string
	volume  string
	secrets map[string][]byte
}

// call runs the driver and interprets its result.
func (d *Driver) call(ctx context.Context, c call) (response, error) {
	if d.unsupported.has(c.op) {
		return response{}, ErrNotSupported
	}
	if d.path == "" {
		return response{}, fmt.Errorf("run %s of FlexVolume driver %q: %w", c.op, d.name, ErrGone)
	}
	start := time.Now()
	d.observer.CallBegins(d.name, c.op)
	ctx, cancel := context.WithTimeout(ctx, d.settings.timeout(c.op))
	defer cancel()

	var resp response
	var callErr error
	switch release, err := d.acquire(ctx, c); {
	case errors.Is(err, context.Canceled):
		callErr = d.fail(c.op, KindCanceled, "the driver was not called: "+err.Error(), err)
	case err != nil:
		callErr = d.fail(c.op, KindBusy, fmt.Sprintf("earlier calls for the volume or the driver have not ended within %s",
			time.Since(start).Round(time.Second)), err)
	default:
		resp, callErr = d.run(ctx, c, release)
	}
	recordFailure(d.failureFile, callErr)
	d.history.add(d.pastCall(c, start, callErr))
	d.observer.CallEnds(Call{Driver: d.name, Operation: c.op, Duration: time.Since(start), Kind: KindOf(callErr)})
	return resp, callErr
}

// pastCall returns the record of a completed call.
func (d *Driver) pastCall(c call, start time.Time, callErr error) PastCall {
	past := PastCall{Driver: d.name, Operation: c.op, Volume: c.volume, Path: pathOf(c), Start: start, Seconds: time.Since(start).Seconds(), Kind: KindOf(callErr)}
	if past.Kind != "" {
		past.Message = callErr.Error()
	}
	return past
}

// acquire waits for the volume's lock and for a driver slot. Init uses neither the lock nor a slot,
// because it must work while other calls hang.
func (d *Driver) acquire(ctx context.Context, c call) (release func(), err error) {
	if c.op == OpInit {
		return func() {}, nil
	}
	return d.limiter.acquire(ctx, c.volume)
}

// run executes the driver. It calls release when the driver's process has exited. If run has killed
// the process group, it calls release when the whole group has exited, possibly after run has
// returned.
func (d *Driver) run(ctx context.Context, c call, release func()) (response, error) {
	start := time.Now()
	process, err := startTrusted(d.path, slices.Concat([]string{string(c.op)}, c.args))
	if err != nil {
		release()
		return response{}, d.fail(c.op, KindStart, err.Error(), err)
	}
	defer process.close()
	removeRecord := recordCall(d.runningCallsDir, process.cmd.Process.Pid, d.pastCall(c, start, nil))
	waitErr := process.wait(ctx)
	select {
	case <-process.groupDone:
		removeRecord()
		release()
	default:
		go func() { <-process.groupDone; removeRecord(); release() }()
	}

	redact := redactor(c.secrets)
	out := process.output(waitErr == nil)
	switch {
	case errors.Is(waitErr, context.DeadlineExceeded):
		deadline, _ := ctx.Deadline()
		return response{}, d.fail(c.op, KindTimeout, fmt.Sprintf("no response within %s, its process group was killed: %s",
			deadline.Sub(start).Round(time.Second), out.quoteStreams(redact)), waitErr)
	case errors.Is(waitErr, errOutputLimit):
		return response{}, d.fail(c.op, KindTooLong, "it printed too much output, its process group was killed: "+out.quoteStreams(redact), waitErr)
	case waitErr != nil:
		return response{}, d.fail(c.op, KindCanceled, "its process group was killed: "+waitErr.Error(), waitErr)
	}
	return d.interpret(c.op, out, redact)
}

// interpret converts the output and exit code to a response or an error. The status in the response
// takes precedence over the exit code: a nonzero exit code is an error only if the response reports
// success.
func (d *Driver) interpret(op Operation, out output, redact func(string) string) (response, error) {
	resp, respErr := parse(out, redact)
	switch {
	case respErr != nil:
		return response{}, d.fail(op, respErr.kind, respErr.text+": "+out.quote(redact), nil)
	case resp.Status == statusNotSupported:
		d.unsupported.add(op)
		return response{}, ErrNotSupported
	case resp.Status == statusFailure:
		return response{}, d.fail(op, KindFailure, fmt.Sprintf("it reports Failure: %q", clip(redact(resp.Message))), nil)
	case out.exit != nil:
		return response{}, d.fail(op, KindExit, "it reports Success but did not exit with 0: "+out.quote(redact), out.exit)
	}
	return resp, nil
}

func (d *Driver) fail(op Operation, kind Kind, text string, cause error) *CallError {
	return &CallError{Driver: d.name, Operation: op, Kind: kind, text: text, cause: cause}
}

// KindOf returns the kind of a CallError, or "" for any other error.
func KindOf(err error) Kind {
	var callErr *CallError
	if errors.As(err, &callErr) {
		return callErr.Kind
	}
	return ""
}
