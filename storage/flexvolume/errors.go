package flexvolume

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrNotSupported is the error of an operation that the driver answers with "Not supported".
var ErrNotSupported = errors.New("operation is not supported by the driver")

// ErrGone is the error of a call whose driver has been removed and of which no copy was kept.
var ErrGone = errors.New("driver is not installed any more")

// Kind says in one word what went wrong in a call; it is fit for a metric's label.
type Kind string

// The kinds of a CallError.
const (
	KindFailure   Kind = "failure"      // the driver says Failure
	KindTimeout   Kind = "timeout"      // no answer before the deadline
	KindBusy      Kind = "busy"         // an earlier call for the volume, or too many for the driver, did not end in time
	KindCanceled  Kind = "canceled"     // the caller gave up
	KindStart     Kind = "start"        // the executable could not be run
	KindNoAnswer  Kind = "no-answer"    // no JSON object was printed
	KindNoise     Kind = "noise"        // text around the answer
	KindTooLong   Kind = "too-long"     // more output than is read
	KindStatus    Kind = "status"       // a status that is none
	KindWrongType Kind = "wrong-type"   // a field with a value of the wrong type
	KindSize      Kind = "size"         // a negative size
	KindExit      Kind = "disagreement" // Success, but an exit code that says otherwise
)

// CallError is the error of a driver's call. Its text quotes what the driver did, shortened and without secrets.
type CallError struct {
	Driver    string
	Operation Operation
	Kind      Kind
	text      string
	cause     error
}

// Error is the whole story in one line.
func (e *CallError) Error() string {
	return fmt.Sprintf("run %s of FlexVolume driver %q: %s", e.Operation, e.Driver, e.text)
}

// Unwrap gives the system's error, where there is one.
func (e *CallError) Unwrap() error { return e.cause }

// fault is a CallError in the making: what the driver did wrong.
type fault struct {
	kind Kind
	text string
}

// maxQuote is how much of a driver's output an error quotes, in bytes. Drivers say the cause last, so the end is kept.
const maxQuote = 512

// clip shortens text for quotation.
func clip(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxQuote {
		return text
	}
	text = text[len(text)-maxQuote:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}

// quote shows what a driver printed and how it ended. Secrets are taken out before anything is shortened; of an output that
// was not read to its end the beginning is shown, because the end may hold the first half of a secret.
func (o output) quote(hide func(string) string) string {
	end := "exit code 0"
	if o.exit != nil {
		end = o.exit.Error()
	}
	show := func(stream []byte) string {
		text := hide(string(stream))
		if len(stream) > maxOutput {
			return text[:maxQuote] + "…"
		}
		return clip(text)
	}
	return fmt.Sprintf("%s, standard output %q, standard error %q", end, show(o.stdout), show(o.stderr))
}
