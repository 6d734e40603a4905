package flexvolume

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrNotSupported is returned if the driver responds "Not supported" to an operation.
var ErrNotSupported = errors.New("operation is not supported by the driver")

// ErrGone is returned by calls to a removed driver that has no last-good copy.
var ErrGone = errors.New("driver is no longer installed")

// Kind is the kind of a call's failure: a single word that is suitable as a metric label.
type Kind string

// The kinds of a CallError.
const (
	KindFailure   Kind = "failure"      // the driver reports Failure
	KindTimeout   Kind = "timeout"      // no response before the deadline
	KindBusy      Kind = "busy"         // earlier calls did not end before the deadline
	KindCanceled  Kind = "canceled"     // the caller canceled the call
	KindStart     Kind = "start"        // the executable did not start
	KindNoAnswer  Kind = "no-answer"    // the driver printed no JSON object
	KindNoise     Kind = "noise"        // the driver printed text around the response
	KindTooLong   Kind = "too-long"     // the output exceeds maxOutput
	KindStatus    Kind = "status"       // the status is unknown
	KindWrongType Kind = "wrong-type"   // a field has a value of the wrong type
	KindSize      Kind = "size"         // a size is negative
	KindExit      Kind = "disagreement" // the status is Success but the exit code is not 0
)

// CallError is a failed driver call. Its text quotes the driver's output, truncated and redacted.
type CallError struct {
	Driver    string
	Operation Operation
	Kind      Kind
	text      string
	cause     error
}

// Error returns a one-line description of the failure.
func (e *CallError) Error() string {
	return fmt.Sprintf("run %s of FlexVolume driver %q: %s", e.Operation, e.Driver, e.text)
}

// Unwrap returns the cause, if any.
func (e *CallError) Unwrap() error { return e.cause }

// responseError describes the problem with a driver's response.
type responseError struct {
	kind Kind
	text string
}

// maxQuote is the maximum length of the driver output that an error quotes, in bytes. Drivers print
// the cause last, so the end is kept.
const maxQuote = 512

// clip truncates text to its last maxQuote bytes.
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

// quote returns the driver's output and exit code for an error. It redacts secrets before it
// truncates the text. If the output exceeds maxOutput, quote shows its beginning, because the
// output can be cut off within a secret, and a partial secret is not redacted.
func (o output) quote(redact func(string) string) string {
	end := "exit code 0"
	if o.exit != nil {
		end = o.exit.Error()
	}
	return end + ", " + o.quoteStreams(redact)
}

// quoteStreams is like quote, but without the exit code, because a killed driver has none.
func (o output) quoteStreams(redact func(string) string) string {
	show := func(stream []byte) string {
		text := redact(string(stream))
		if len(stream) > maxOutput {
			return text[:maxQuote] + "…"
		}
		return clip(text)
	}
	return fmt.Sprintf("standard output %q, standard error %q", show(o.stdout), show(o.stderr))
}
