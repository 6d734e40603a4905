package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Observer is told what a Registry and its drivers do, for metrics. Its methods must not block.
type Observer interface {
	// CallBegins is followed by one CallEnds, whose time includes the wait for the volume's and the driver's turn.
	CallBegins(driver string, op Operation)
	CallEnds(Call)
	ScanEnds(Scan)
}

// Call is what became of one call of a driver.
type Call struct {
	Driver    string
	Operation Operation
	Duration  time.Duration
	// Kind is empty for success and for "Not supported".
	Kind Kind
}

// Scan is what became of one scan of the plug-in directory.
type Scan struct {
	Duration time.Duration
	// Err is nil where the directory could be read.
	Err error
}

// unobserved is the Observer of who wants none.
type unobserved struct{}

func (unobserved) CallBegins(string, Operation) {}
func (unobserved) CallEnds(Call)                {}
func (unobserved) ScanEnds(Scan)                {}

// lacks are the operations that a version of a driver has answered with "Not supported". They are not called again.
type lacks struct {
	mu  sync.Mutex
	ops map[Operation]bool
}

func (l *lacks) has(op Operation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ops[op]
}

func (l *lacks) add(op Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ops == nil {
		l.ops = map[Operation]bool{}
	}
	l.ops[op] = true
}

// call is one call of a driver: the operation, its further arguments, the volume whose turn it takes, and the secrets in the arguments.
type call struct {
	op      Operation
	args    []string
	volume  string
	secrets map[string][]byte
}

// call runs the driver and judges what it did.
func (d *Driver) call(ctx context.Context, c call) (answer, error) {
	if d.lacks.has(c.op) {
		return answer{}, ErrNotSupported
	}
	if d.path == "" {
		return answer{}, fmt.Errorf("run %s of FlexVolume driver %q: %w", c.op, d.name, ErrGone)
	}
	began := time.Now()
	d.observer.CallBegins(d.name, c.op)
	ctx, cancel := context.WithTimeout(ctx, d.settings.timeout(c.op))
	defer cancel()

	var said answer
	var problem error
	switch leave, err := d.enter(ctx, c); {
	case errors.Is(err, context.Canceled):
		problem = d.fail(c.op, KindCanceled, "it was not called: "+err.Error(), err)
	case err != nil:
		problem = d.fail(c.op, KindBusy, fmt.Sprintf("earlier calls for the volume or the driver have not ended within %s",
			time.Since(began).Round(time.Second)), err)
	default:
		said, problem = d.run(ctx, c, leave)
	}
	noteFailure(d.failures, problem)
	d.observer.CallEnds(Call{Driver: d.name, Operation: c.op, Duration: time.Since(began), Kind: KindOf(problem)})
	return said, problem
}

// enter waits for the driver's and the volume's turn. Init has no turn: it must work while calls hang.
func (d *Driver) enter(ctx context.Context, c call) (leave func(), err error) {
	if c.op == OpInit {
		return func() {}, nil
	}
	return d.gate.enter(ctx, c.volume)
}

// run executes the driver. leave is called when its process is gone, with its whole group where that was killed, which may be after run has
// returned.
func (d *Driver) run(ctx context.Context, c call, leave func()) (answer, error) {
	began := time.Now()
	process, err := start(d.path, slices.Concat([]string{string(c.op)}, c.args))
	if err != nil {
		leave()
		return answer{}, d.fail(c.op, KindStart, err.Error(), err)
	}
	defer process.finish()
	forget := noteRunning(d.running, process.cmd.Process.Pid)
	ended := process.wait(ctx)
	select {
	case <-process.gone:
		forget()
		leave()
	default:
		go func() { <-process.gone; forget(); leave() }()
	}

	hide := redactor(c.secrets)
	out := process.output(ended == nil)
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		deadline, _ := ctx.Deadline()
		return answer{}, d.fail(c.op, KindTimeout, fmt.Sprintf("no answer within %s, its process group was killed: %s",
			deadline.Sub(began).Round(time.Second), out.quote(hide)), ended)
	case errors.Is(ended, errFlood):
		return answer{}, d.fail(c.op, KindTooLong, "it did not stop printing, its process group was killed: "+out.quote(hide), ended)
	case ended != nil:
		return answer{}, d.fail(c.op, KindCanceled, "its process group was killed: "+ended.Error(), ended)
	}
	return d.judge(c.op, out, hide)
}

// judge turns what a driver printed and its exit code into an answer or an error. The status decides; an exit code
// matters only where it contradicts a success.
func (d *Driver) judge(op Operation, out output, hide func(string) string) (answer, error) {
	said, problem := parse(out, hide)
	switch {
	case problem != nil:
		return answer{}, d.fail(op, problem.kind, problem.text+": "+out.quote(hide), nil)
	case said.Status == statusNotSupported:
		d.lacks.add(op)
		return answer{}, ErrNotSupported
	case said.Status == statusFailure:
		return answer{}, d.fail(op, KindFailure, fmt.Sprintf("it reports Failure: %q", clip(hide(said.Message))), nil)
	case out.exit != nil:
		return answer{}, d.fail(op, KindExit, "it reports Success but did not exit with 0: "+out.quote(hide), out.exit)
	}
	return said, nil
}

// fail makes an error of the call.
func (d *Driver) fail(op Operation, kind Kind, text string, cause error) *CallError {
	return &CallError{Driver: d.name, Operation: op, Kind: kind, text: text, cause: cause}
}

// KindOf is the kind of a call's error, or empty for any other error.
func KindOf(err error) Kind {
	var failed *CallError
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return ""
}
