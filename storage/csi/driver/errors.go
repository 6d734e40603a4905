package driver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is the error of a call. The request's secrets are redacted.
type Error struct {
	// Driver is the name of the driver, or the path of its socket before the driver has reported its
	// name.
	Driver string
	// Method is the name of the method, such as "CreateVolume".
	Method string
	// Code and Message are from the driver or from the connection.
	Code    codes.Code
	Message string
}

// Error returns the call and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("call %s of CSI driver %q: %s: %s", e.Method, e.Driver, e.Code, e.Message)
}

// GRPCStatus implements the interface of package status.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// CodeOf returns the code of a call's error: OK for nil, and Unknown for any other error.
func CodeOf(err error) codes.Code {
	var e *Error
	switch {
	case err == nil:
		return codes.OK
	case errors.As(err, &e):
		return e.Code
	default:
		return codes.Unknown
	}
}

// Final reports whether a failed call has certainly ended, so that no repetition is necessary to
// determine its outcome. A call is not final if it timed out, if the connection broke, or if the
// driver still processes an earlier call (CSI specification, "Error Scheme": ABORTED, and the codes
// of the transport). An error that is not from a call is final.
func Final(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch CodeOf(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted:
		return false
	default:
		return true
	}
}

// HasNoEffect reports whether a final error has a code for which a conforming driver has changed
// nothing. With other codes, such as INTERNAL, the driver might have failed halfway.
// RESOURCE_EXHAUSTED might be temporary.
func HasNoEffect(err error) bool {
	switch CodeOf(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.FailedPrecondition,
		codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// IsCallError reports whether an error was returned by a call.
func IsCallError(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
