package driver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is the error of a driver call. The request's secrets are redacted.
type Error struct {
	// Driver is the driver's name, or the path of its socket if the driver has not reported its
	// name yet.
	Driver string
	// Method is the name of the method, such as "CreateVolume".
	Method string
	// Code and Message come from the driver or, if the call did not reach it, from the connection.
	Code    codes.Code
	Message string
}

// Error returns a message that contains the call and the driver's message.
func (e *Error) Error() string {
	return fmt.Sprintf("call %s of CSI driver %q: %s: %s", e.Method, e.Driver, e.Code, e.Message)
}

// GRPCStatus returns the call's gRPC status. The functions of package status call this method.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// CodeOf returns the gRPC status code of a failed call. It returns OK for nil, and Unknown for an
// error that does not come from a call.
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

// Final reports whether the outcome of a failed call is known, so that the call need not be
// repeated to determine its outcome. A call is not final if it timed out, if the connection was
// lost, or if the driver is still processing an earlier call. Source: CSI specification, "Error
// Scheme" (ABORTED, and the transport's codes). An error that does not come from a call is final.
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

// HasNoEffect reports whether the code of a final error guarantees that a conforming driver has
// changed nothing. After other codes, such as INTERNAL, the driver might have failed partway
// through the operation. RESOURCE_EXHAUSTED might be temporary.
func HasNoEffect(err error) bool {
	switch CodeOf(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.FailedPrecondition,
		codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// IsCallError reports whether an error was returned by a driver call.
func IsCallError(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
